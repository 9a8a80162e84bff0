// ps_server: runs one parameter server until SIGTERM or SIGINT.
//
// The address and the number of workers come from flags. What the flags leave
// open comes from TF_CONFIG, in which the server is a task of type "ps".

#include <errno.h>  // program_invocation_short_name
#include <signal.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "penstock/record.h"
#include "ps/access/access.h"
#include "ps/access/policy.h"
#include "ps/cluster.h"
#include "ps/server/server.h"
#include "ps/service/service.h"
#include "ps/tls.h"
#include "tensor_service/allocator.h"
#include "tensor_service/calls.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/status.h"

namespace {

struct Flags {
  std::string record;    // empty: not recorded
  std::string listen;    // empty: not given
  unsigned workers = 0;  // 0: not given
  double lease_seconds = 10;
  double assemble_seconds = 60;
  double wait_seconds = 600;
  uint64_t memory = uint64_t{16} << 30;
  uint64_t held_gradients = uint64_t{4} << 30;
  penstock::ps::TlsFiles tls;
  penstock::ps::AccessFiles access;
  bool off = false;
  bool quiet = false;
};

// How long after SIGTERM the streams of workers that have not left are
// cancelled.
constexpr absl::Duration kShutdownGrace = absl::Seconds(2);

constexpr char kAnyLocalPort[] = "127.0.0.1:0";

constexpr int kUsage = 2;  // the exit code for a wrong command line
constexpr unsigned kMaxWorkers = 100'000;
constexpr double kMinSeconds = 0.1;
constexpr double kMaxSeconds = 86'400;

// For CLI11: returns what is wrong with it, or "". CLI::Range takes NaN.
std::string CheckSeconds(const std::string& text) {
  double seconds = 0;
  return absl::SimpleAtod(text, &seconds) && seconds >= kMinSeconds &&
                 seconds <= kMaxSeconds
             ? ""
             : absl::StrCat(text, " is no time from ", kMinSeconds, " to ",
                            kMaxSeconds, " seconds");
}

// "ps_server"; or "penstock ps serve", if that command runs it.
std::string OwnName() { return program_invocation_short_name; }

// Nobody is to know which ids fall into one shard.
uint64_t RandomSeed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

int Fail(const std::string& what) {
  std::cerr << OwnName() << ": " << what << "\n";
  return 1;
}

int WrongFlags(const std::string& what) {
  Fail(what);
  const bool by_command = OwnName() != "ps_server";
  Fail(absl::StrCat("try: ", OwnName(), by_command ? " --flags" : " --help"));
  return kUsage;
}

// Blocks the signals in this thread and those that it starts, so that only the
// sigwait() in Run() receives them.
sigset_t BlockSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Checks the flags, and fills in what they leave open.
absl::Status CompleteFromEnvironment(Flags* flags) {
  absl::Status tls = flags->tls.Check();
  if (!tls.ok()) return tls;
  if (flags->listen.empty() || flags->workers == 0) {
    auto cluster = penstock::ps::ClusterFromEnvironment();
    if (cluster.ok() && cluster->role != penstock::ps::Role::kServer) {
      return absl::InvalidArgumentError(
          "task.type in TF_CONFIG is not ps, but this is a parameter server");
    }
    if (cluster.ok()) {
      if (flags->listen.empty())
        flags->listen = cluster->peers()[cluster->index];
      if (flags->workers == 0) {
        flags->workers = static_cast<unsigned>(cluster->workers.size());
      }
    } else if (!absl::IsNotFound(cluster.status())) {
      return cluster.status();
    }
  }
  if (flags->workers == 0) {
    return absl::InvalidArgumentError(
        "no cluster: give --workers (and --listen), or set TF_CONFIG");
  }
  if (flags->listen.empty()) flags->listen = kAnyLocalPort;
  return absl::OkStatus();
}

std::unique_ptr<grpc::Server> Listen(
    const Flags& flags,
    const std::shared_ptr<grpc::ServerCredentials>& security,
    grpc::Service* service, int* port) {
  penstock::Options options;
  if (flags.off) options.policy = penstock::Policy::kOff;
  grpc::ServerBuilder builder;
  penstock::Enable(&builder, options);
  penstock::tensor::AllowUnlimitedMessages(&builder);
  // Otherwise two servers with the same address would silently share its
  // workers.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(flags.listen, security, port);
  builder.RegisterService(service);
  return builder.BuildAndStart();
}

penstock::ps::Server::Options OptionsOf(const Flags& flags) {
  penstock::ps::Server::Options options;
  options.membership.expected_workers = flags.workers;
  options.membership.lease = absl::Seconds(flags.lease_seconds);
  options.membership.assemble_timeout = absl::Seconds(flags.assemble_seconds);
  options.max_wait = absl::Seconds(flags.wait_seconds);
  options.max_held_bytes = flags.held_gradients;
  options.tables.max_dense_bytes = flags.memory;
  options.tables.hash_seed = RandomSeed();
  if (flags.quiet) options.log = [](const std::string&) {};
  return options;
}

void PrintSummary(const penstock::ps::ServerReport& report) {
  std::cerr << absl::StrCat(OwnName(), ": stopped at version ", report.version,
                            "; pushes counted ", report.pushes.counted,
                            ", repeated or late ", report.pushes.not_counted,
                            ", refused ", report.pushes.refused,
                            "; workers lost ", report.workers_lost, "\n");
}

int Run(Flags flags) {
  absl::Status complete = CompleteFromEnvironment(&flags);
  if (!complete.ok()) return Fail(std::string(complete.message()));
  sigset_t signals = BlockSignals();  // before there are other threads
  if (!flags.record.empty()) {
    const absl::Status status = penstock::RecordCalls(flags.record);
    if (!status.ok()) return Fail(std::string(status.message()));
  }
  auto policy = penstock::ps::ReadAccessPolicy(flags.access, flags.tls.given());
  if (!policy.ok()) return Fail(std::string(policy.status().message()));
  auto security = penstock::ps::ServerSecurity(flags.tls);
  if (!security.ok()) return Fail(std::string(security.status().message()));
  // Values are pulled where they lie.
  if (!flags.off) {
    namespace tensor = penstock::tensor;
    tensor::SetDefaultAllocator(tensor::PoolAllocator<penstock::Allocator>());
  }
  penstock::ps::Server core(OptionsOf(flags));
  penstock::ps::Access access(*std::move(policy), flags.tls.given());
  std::unique_ptr<grpc::Service> service =
      penstock::ps::MakeService(&core, {&access});
  int port = 0;
  std::unique_ptr<grpc::Server> server =
      Listen(flags, *security, service.get(), &port);
  if (server == nullptr || port == 0) {
    return Fail(absl::StrCat("cannot listen on ", flags.listen));
  }
  // A parent that has started us on port 0 reads this line.
  printf("port %d\n", port);
  fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  core.Drain();
  server->Shutdown(penstock::tensor::DeadlineAfter(kShutdownGrace));
  server->Wait();
  if (!flags.quiet) PrintSummary(core.report());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  penstock::ps::KeepTlsAtExit();
  Flags flags;
  CLI::App app("Penstock parameter server");
  app.add_option("--listen", flags.listen,
                 "address; port 0 takes a free one; else this task's in "
                 "TF_CONFIG, else 127.0.0.1:0");
  app.add_option("--workers", flags.workers,
                 "workers that the start waits for; else those in TF_CONFIG")
      ->check(CLI::Range(1u, kMaxWorkers));
  app.add_option("--lease", flags.lease_seconds,
                 "seconds of silence after which a worker counts as dead")
      ->check(CheckSeconds)
      ->capture_default_str();
  app.add_option("--assemble", flags.assemble_seconds,
                 "seconds from the first worker until the start without the "
                 "rest")
      ->check(CheckSeconds)
      ->capture_default_str();
  app.add_option("--wait", flags.wait_seconds,
                 "seconds after which a call that waits for other workers ends")
      ->check(CheckSeconds)
      ->capture_default_str();
  app.add_option("--memory", flags.memory,
                 "bytes that dense variables may take, such as 64GiB: their "
                 "values twice, and the optimizer's slots")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("16GiB");
  app.add_option("--held-gradients", flags.held_gradients,
                 "bytes of gradients that wait until they are applied: a "
                 "synchronous step needs those of all workers")
      ->transform(CLI::AsSizeValue(false))
      ->default_str("4GiB");
  app.add_option("--record", flags.record,
                 "record the traffic to this file, to be replayed");
  app.add_option("--ca", flags.tls.ca,
                 "use TLS, and admit workers whom this PEM file vouches for")
      ->check(CLI::ExistingFile);
  app.add_option("--cert", flags.tls.cert, "the certificate to show (PEM)")
      ->check(CLI::ExistingFile);
  app.add_option("--key", flags.tls.key, "its private key (PEM)")
      ->check(CLI::ExistingFile);
  app.add_option("--access", flags.access.rules,
                 "who may read, train or administer, by names in certificates: "
                 "a file of rules; see docs/ps.md")
      ->check(CLI::ExistingFile);
  app.add_option("--secret", flags.access.secret,
                 "a file with the secret that each call has to have, where "
                 "there is no TLS")
      ->check(CLI::ExistingFile);
  app.add_flag("--stock", flags.off, "stock gRPC, without Penstock");
  app.add_flag("--quiet", flags.quiet, "no log lines");
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return WrongFlags(error.what());
  }
  return Run(flags);
}
