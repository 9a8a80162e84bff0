// ps_server: runs one parameter server until SIGTERM or SIGINT. SIGHUP reloads
// the access files.
//
// The address and the number of workers come from flags. Missing flags come
// from TF_CONFIG, in which the server is a task of type "ps".

#include <errno.h>  // program_invocation_short_name
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/metrics.h"
#include "penstock/penstock.h"
#include "penstock/record.h"
#include "ps/access/access.h"
#include "ps/access/policy.h"
#include "ps/announce.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/client/periodic_checkpoints.h"
#include "ps/other_servers.h"
#include "ps/register.h"
#include "ps/replicas.h"
#include "ps/server/checkpoint_restore.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"
#include "ps/server_flags.h"
#include "ps/service/metrics.h"
#include "ps/service/protobuf_log.h"
#include "ps/service/service.h"
#include "ps/shards/shards.h"
#include "ps/shared_pool.h"
#include "ps/tier/disk_tiers.h"
#include "ps/tls.h"
#include "ps/usable_memory.h"
#include "tensor_service/allocator.h"
#include "tensor_service/calls.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/status.h"
#include "transport/base/flag_errors.h"
#include "transport/base/listen_error.h"
#include "transport/base/log.h"
#include "transport/base/parse_error_text.h"
#include "transport/base/program_start.h"

namespace penstock::ps {
namespace {

using Files = std::unique_ptr<checkpoint::Files>;

// Limits the wait after SIGTERM for workers to leave. The streams of remaining
// workers are then cancelled.
constexpr absl::Duration kShutdownGrace = absl::Seconds(2);

// The exit code for a wrong command line, also if TF_CONFIG completes it.
constexpr int kUsage = 2;

// Returns "ps_server", or "penstock ps serve" if that command runs the server.
std::string OwnName() { return program_invocation_short_name; }

int Fail(absl::string_view what) {
  std::cerr << OwnName() << ": " << what << "\n";
  return 1;
}

int WrongFlags(absl::string_view what) {
  Fail(what);
  const bool by_command = OwnName() != "ps_server";
  Fail(absl::StrCat("try: ", OwnName(), by_command ? " --flags" : " --help"));
  return kUsage;
}

int PrintHelp(const CLI::App& app, const CLI::Success& asked) {
  const int code = app.exit(asked);
  std::cout.flush();
  return std::cout ? code : Fail("cannot write to standard output");
}

// Blocks the signals in this thread and in the threads that it starts. Only
// sigwait() in AwaitEnd() receives the signals.
sigset_t BlockSignals(const ServerFlags& flags) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGTERM);
  sigaddset(&signals, SIGINT);
  if (flags.access.given()) sigaddset(&signals, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  return signals;
}

// Returns a secret seed, so that nobody can predict which ids share a shard.
uint64_t RandomSeed() {
  std::random_device device;
  return static_cast<uint64_t>(device()) << 32 | device();
}

Server::Options OptionsOf(const ServerFlags& flags, checkpoint::Files* files,
                          DiskTiers* spill) {
  Server::Options options;
  options.membership.expected_workers = flags.workers;
  options.membership.lease = absl::Seconds(flags.lease_seconds);
  options.membership.assemble_timeout = absl::Seconds(flags.assemble_seconds);
  options.max_wait = absl::Seconds(flags.wait_seconds);
  options.max_held_bytes = flags.limits.held_gradients;
  options.tables.max_dense_bytes = flags.limits.dense;
  options.tables.max_sparse_bytes = flags.limits.sparse;
  options.tables.max_answer_bytes = flags.limits.held_answers;
  options.tables.hash_seed = RandomSeed();
  if (!flags.stock) {
    options.tables.make_dense_room = MakeSharedRoom(
        UsableMemory(), [quiet = flags.quiet](const std::string& line) {
          if (!quiet) base::LogInfo("ps: " + line);
        });
  }
  if (spill != nullptr) {
    options.tables.new_tier = [spill] { return spill->NewTier(); };
  }
  if (!flags.restore.empty()) {
    uint64_t step = 0;
    const bool is_step = absl::SimpleAtoi(flags.restore, &step);
    RestoreOptions restore;
    restore.may_drop_tables = flags.restore_drop;
    restore.may_drop_rows = flags.restore_evict;
    restore.folder = flags.checkpoints;
    options.restore = RestoreFrom(
        files, is_step ? absl::make_optional(step) : absl::nullopt, restore);
  }
  if (flags.quiet) options.log = [](const std::string&) {};
  return options;
}

// Opens the folder of spilled rows. Returns null without such a folder.
absl::StatusOr<std::unique_ptr<DiskTiers>> OpenSpill(const ServerFlags& flags) {
  if (flags.spill.empty()) return nullptr;
  DiskOptions options;
  options.folder = flags.spill;
  options.max_bytes = flags.spill_limit;
  return DiskTiers::Open(options);
}

// Returns null if no checkpoints are requested.
absl::StatusOr<std::unique_ptr<PeriodicCheckpoints>> StartCheckpoints(
    const ServerFlags& flags, FindFirst find, ServersInView in_view,
    const std::function<std::shared_ptr<CheckpointWriter>()>& writer) {
  if (flags.checkpoint_every_seconds == 0) return nullptr;
  auto connect = ToOtherServers(flags);
  if (!connect.ok()) return connect.status();
  PeriodicCheckpoints::Options options;
  options.interval = absl::Seconds(flags.checkpoint_every_seconds);
  options.checkpoint.incremental = flags.incremental;
  options.checkpoint.keep = flags.keep_checkpoints;
  options.servers = AllServers(std::move(find), std::move(in_view));
  options.connect = *std::move(connect);
  options.log = [quiet = flags.quiet](const std::string& line) {
    if (!quiet) base::LogInfo("ps: " + line);
  };
  options.failed = [writer, log = options.log](const absl::Status& status) {
    const auto now = writer();
    if (now != nullptr) return now->RecordFailure(status.message());
    log(absl::StrCat("no checkpoint: ", status.message()));
  };
  return std::make_unique<PeriodicCheckpoints>(std::move(options));
}

std::unique_ptr<grpc::Server> Listen(
    const ServerFlags& flags,
    const std::shared_ptr<grpc::ServerCredentials>& security,
    grpc::Service* service, int* port) {
  Options options;
  if (flags.stock) options.policy = Policy::kOff;
  grpc::ServerBuilder builder;
  Enable(&builder, options);
  tensor::AllowUnlimitedMessages(&builder);
  // Forbids sharing the port. Otherwise two servers with the same address would
  // silently share the workers.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddListeningPort(flags.listen, security, port);
  builder.RegisterService(service);
  return builder.BuildAndStart();
}

// Returns null without --replicas.
absl::StatusOr<std::unique_ptr<ProcessReplicas>> OpenReplicas(
    const ServerFlags& flags, const Server::Options& options, Server* own,
    checkpoint::Files* files, CheckpointWriter* claim) {
  if (flags.etcd.replicas == 0) return nullptr;
  const auto port = FixedPort(flags.listen);
  if (!port.ok()) return port.status();
  auto connect = ToOtherServers(flags);
  if (!connect.ok()) return connect.status();
  ProcessReplicas::Options replicas;
  replicas.replicas = flags.etcd.replicas;
  replicas.address = OwnAddress(flags, *port);
  replicas.connect = *std::move(connect);
  Server::Options empty = ForReplica(options);
  empty.restore = nullptr;  // gets the values of another server
  replicas.new_server = [empty] { return std::make_unique<Server>(empty); };
  replicas.checkpoints = files;
  replicas.claim = claim;
  replicas.worker_lease = options.membership.lease;
  replicas.assemble_timeout = options.membership.assemble_timeout;
  replicas.log = [quiet = flags.quiet](const std::string& line) {
    if (!quiet) base::LogInfo("ps: " + line);
  };
  return std::make_unique<ProcessReplicas>(replicas, own);
}

void PrintSummary(const ServerReport& report) {
  std::cerr << absl::StrCat(OwnName(), ": stopped at version ", report.version,
                            "; pushes counted ", report.pushes.counted,
                            ", repeated or late ", report.pushes.not_counted,
                            ", refused ", report.pushes.refused,
                            "; workers lost ", report.workers_lost, "\n");
}

// Blocks until SIGTERM or SIGINT. At SIGHUP, reloads the access files if valid.
void AwaitEnd(const ServerFlags& flags, const sigset_t& signals,
              Access* access) {
  int signal = 0;
  while (sigwait(&signals, &signal) == 0 && signal == SIGHUP) {
    auto policy = ReadAccessPolicy(flags.access, flags.tls.given());
    if (policy.ok()) {
      access->Replace(*std::move(policy));
    } else {
      base::LogWarning(
          absl::StrCat("access: not reloaded: ", policy.status().message()));
    }
  }
}

// Returns the process's exit code.
int Serve(const ServerFlags& flags, const sigset_t& signals,
          checkpoint::Files* files) {
  auto policy = ReadAccessPolicy(flags.access, flags.tls.given());
  if (!policy.ok()) return Fail(policy.status().message());
  auto security = ServerSecurity(flags.tls);
  if (!security.ok()) return Fail(security.status().message());
  auto spill = OpenSpill(flags);
  if (!spill.ok()) return Fail(spill.status().message());
  if (!flags.quiet) base::LogInfo("ps: " + LimitsText(flags.limits));
  const Server::Options options = OptionsOf(flags, files, spill->get());
  Server core(flags.etcd.replicas > 0 ? ForReplica(options) : options);
  Access access(*std::move(policy), flags.tls.given());
  std::unique_ptr<CheckpointWriter> writer;
  if (files != nullptr) {
    writer = std::make_unique<CheckpointWriter>(files, &core,
                                                CheckpointWriter::Options());
  }
  auto replicas = OpenReplicas(flags, options, &core, files, writer.get());
  if (!replicas.ok()) return Fail(replicas.status().message());
  ServiceOptions service_options{&access, writer.get()};
  ServerRegistration::Replicas registered;
  std::shared_ptr<void> replica_metrics;
  if (*replicas != nullptr) {
    service_options.shards = (*replicas)->shards();
    service_options.view = [&replicas] { return (*replicas)->View(); };
    registered = (*replicas)->registration();
    replica_metrics =
        AddMetrics([&replicas] { return (*replicas)->Metrics(); });
  }
  const std::unique_ptr<grpc::Service> service =
      MakeService(&core, service_options);
  // The server of shard 0, and the writer of its checkpoints, if this process
  // has them.
  const FindFirst find = [&]() -> std::shared_ptr<const Server> {
    if (*replicas == nullptr) return {std::shared_ptr<Server>(), &core};
    const auto leader = (*replicas)->shards()->LeaderOf(0);
    return leader.ok() ? (*leader)->server() : nullptr;
  };
  const auto first_writer = [&]() -> std::shared_ptr<CheckpointWriter> {
    std::shared_ptr<CheckpointWriter> own(std::shared_ptr<void>(),
                                          writer.get());
    if (*replicas == nullptr) return own;
    const auto leader = (*replicas)->shards()->LeaderOf(0);
    return leader.ok() ? (*leader)->Writer().value_or(nullptr) : own;
  };
  const std::shared_ptr<void> metrics = AddMetrics([&core, first_writer] {
    return MetricsOf(ReportOf(core, first_writer().get()));
  });
  const ServersInView in_view = [&] {
    std::vector<std::string> servers;
    if (*replicas == nullptr) return servers;
    const v1::GetViewReply view = (*replicas)->View();
    servers.assign(view.servers().begin(), view.servers().end());
    return servers;
  };
  auto checkpoints = StartCheckpoints(flags, find, in_view, first_writer);
  if (!checkpoints.ok()) return Fail(checkpoints.status().message());
  int port = 0;
  const std::unique_ptr<grpc::Server> server =
      Listen(flags, *security, service.get(), &port);
  if (server == nullptr || port == 0) {
    const std::string why = base::WhyCannotListen(flags.listen);
    return Fail(absl::StrCat(
        "cannot listen on ", flags.listen, ": ",
        why.empty() ? "is it HOST:PORT, and can Penstock be used, if it is "
                      "required? Port 0 takes a free one"
                    : why));
  }
  bool has_failed = false;  // written before `registration` ends
  auto registration = std::make_unique<ServerRegistration>(
      flags.etcd, OwnAddress(flags, port), flags.quiet, registered,
      [&](absl::Status status) {
        if (status.ok()) status = Announce(flags, port);
        if (status.ok()) return;
        Fail(status.message());
        has_failed = true;
        kill(getpid(), SIGTERM);
      });
  AwaitEnd(flags, signals, &access);
  registration.reset();  // no further worker finds this server
  if (*replicas != nullptr) (*replicas)->Stop();
  core.Drain();
  server->Shutdown(tensor::DeadlineAfter(kShutdownGrace));
  server->Wait();
  if (!flags.quiet) PrintSummary(core.report());
  return has_failed ? 1 : 0;
}

// Checks the folder of --restore. Only warns if other servers have the values.
absl::Status CheckFolder(const ServerFlags& flags, checkpoint::Files* files) {
  uint64_t step = 0;
  if (absl::SimpleAtoi(flags.restore, &step)) {
    absl::Status found = CheckHasStep(files, step, flags.checkpoints);
    if (found.ok() || flags.etcd.replicas == 0) return found;
    base::LogWarning(absl::StrCat("ps: only other servers can restore here: ",
                                  found.message()));
  }
  const bool is_used =
      flags.restore.empty() && flags.checkpoint_every_seconds > 0;
  return is_used ? CheckUnused(files, flags.checkpoints) : absl::OkStatus();
}

int Run(ServerFlags flags) {
  const absl::Status complete = CompleteFromEnvironment(&flags);
  if (!complete.ok()) return WrongFlags(complete.message());
  const sigset_t signals = BlockSignals(flags);  // before other threads
  // Ignores SIGXFSZ, so that a file that exceeds `ulimit -f` makes its write
  // fail instead of ending the server.
  signal(SIGXFSZ, SIG_IGN);
  if (!flags.record.empty()) {
    const absl::Status status = RecordCalls(flags.record);
    if (!status.ok()) return Fail(absl::StrCat("--record: ", status.message()));
  }
  // Allocates values in shared memory, so that a pull needs no copy.
  if (!flags.stock) {
    tensor::SetDefaultAllocator(tensor::PoolAllocator<SharedPool>());
  }
  Files files;
  if (!flags.checkpoints.empty()) {
    auto opened = checkpoint::OpenFolder(flags.checkpoints);
    if (!opened.ok()) return Fail(opened.status().message());
    files = *std::move(opened);
  }
  absl::Status usable = CheckFolder(flags, files.get());
  if (!usable.ok()) return Fail(usable.message());
  return Serve(flags, signals, files.get());
}

int Main(int argc, char** argv) {
  base::PrepareProgram(program_invocation_short_name);
  KeepTlsAtExit();
  TakeProtobufLog();
  ServerFlags flags;
  CLI::App app("Penstock parameter server");
  DeclareFlags(&app, &flags);
  // CLI11 would read the next flag as the value.
  const std::string empty = base::FlagWithoutValue({argv, argv + argc});
  if (!empty.empty()) return WrongFlags(empty);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {
    return PrintHelp(app, asked);
  } catch (const CLI::ParseError& error) {
    return WrongFlags(base::ParseErrorText(app, error));
  }
  return Run(std::move(flags));
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) { return penstock::ps::Main(argc, argv); }
