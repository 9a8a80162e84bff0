// digits_worker: trains on the digits together with other workers. With the
// role evaluator, watches the workers instead.
//
// Without --servers, TF_CONFIG has the servers, the role and the rank.
//
// Standard output is for the program that started this one. One line each:
//   gate <n>            (only with --gate: waits before step n)
//   step <n> <loss> <pull us> <push us> <wait us>
//   path <server> <path of the connection to the server>
//   result <test accuracy> <final loss>         (worker 0 only)
//   evaluated <version> <test accuracy>         (evaluator only)

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/common/connection.h"
#include "examples/digits/dataset.h"
#include "examples/digits/evaluator.h"
#include "examples/digits/model.h"
#include "penstock/penstock.h"
#include "ps/access/send_secret.h"
#include "ps/client/define.h"
#include "ps/client/reader.h"
#include "ps/client/reattach.h"
#include "ps/client/training_connection.h"
#include "ps/client/worker.h"
#include "ps/cluster.h"
#include "ps/membership/membership.h"
#include "ps/membership/target.h"
#include "ps/tls.h"
#include "tensor_service/allocator.h"
#include "tensor_service/pool_allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::digits {
namespace {

// Limits the wait for servers that register in etcd.
constexpr absl::Duration kFindTimeout = absl::Seconds(60);

struct Flags {
  std::string servers;
  unsigned rank = 0;
  unsigned workers = 1;
  bool evaluator = false;
  unsigned steps = 300;
  unsigned every = 100;
  unsigned batch = 32;
  int hidden = 512;
  TrainingOptions training;
  unsigned seed = 1;
  ps::TlsFiles tls;
  std::string secret;  // the path of a file
  bool stock = false;
  bool gate = false;
};

// The role of this process in the training.
struct Part {
  std::vector<std::string> servers;
  unsigned rank = 0;
  unsigned workers = 1;
  bool evaluator = false;
  // channels to the servers
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  ps::Router::Connect connect;  // makes channels to servers that come later
  // Keeps this worker registered in etcd. Null if etcd is not used.
  std::unique_ptr<ps::membership::Membership> membership;
};

absl::StatusOr<Part> PartFromFlags(const Flags& flags) {
  if (flags.rank >= flags.workers) {
    return absl::InvalidArgumentError(absl::StrCat(
        "--rank=", flags.rank, " is out of range: --workers=", flags.workers));
  }
  std::vector<std::string> servers;
  if (!ps::membership::IsTarget(flags.servers)) {
    servers = absl::StrSplit(flags.servers, ',', absl::SkipWhitespace());
  }
  return Part{std::move(servers), flags.rank, flags.workers,
              flags.evaluator,    {},         nullptr};
}

// Registers a worker in etcd, and waits for the servers.
absl::Status FindServers(const std::string& target, Part* part) {
  auto member = ps::membership::Membership::Open(target, kFindTimeout);
  if (!member.ok()) return member.status();
  if (!part->evaluator) {
    absl::Status status =
        (*member)->RegisterWorker(part->rank, [](const std::string& line) {
          std::cerr << "digits_worker: " << line << "\n";
        });
    if (!status.ok()) return status;
  }
  auto servers = (*member)->AwaitServers(kFindTimeout, nullptr);
  if (!servers.ok()) return servers.status();
  part->servers = *std::move(servers);
  part->membership = *std::move(member);
  return absl::OkStatus();
}

absl::StatusOr<Part> PartFromEnvironment() {
  absl::StatusOr<ps::Cluster> cluster = ps::ClusterFromEnvironment();
  if (absl::IsNotFound(cluster.status())) {
    return absl::InvalidArgumentError(
        "no cluster: give --servers (with --rank and --workers), or set "
        "TF_CONFIG");
  }
  if (!cluster.ok()) return cluster.status();
  if (cluster->role == ps::Role::kServer) {
    return absl::InvalidArgumentError(
        "task.type in TF_CONFIG is ps, but this is a worker: run ps_server");
  }
  return Part{cluster->servers,
              static_cast<unsigned>(cluster->index),
              static_cast<unsigned>(cluster->workers.size()),
              cluster->role == ps::Role::kEvaluator,
              {},
              nullptr};
}

// A stopwatch for consecutive actions. Measures the microseconds since the last
// call.
class Lap {
 public:
  int64_t operator()() {
    absl::Time now = absl::Now();
    int64_t lap = absl::ToInt64Microseconds(now - last_);
    last_ = now;
    return lap;
  }

 private:
  absl::Time last_ = absl::Now();
};

// Takes one training step, and increments `step`.
absl::Status TrainStep(const Flags& flags, const Part& part,
                       const Images& train, ps::Worker* worker,
                       uint64_t* step) {
  Lap lap;
  absl::StatusOr<ps::Pulled> pulled = worker->Pull(*step);
  int64_t pull = lap();
  if (!pulled.ok()) return pulled.status();
  *step = pulled->clock();  // later if other workers are ahead
  Images batch = BatchOf(train, *step, part.rank, part.workers, flags.batch);
  absl::StatusOr<Gradients> gradients =
      ComputeGradients(pulled->AllDense(), batch);
  if (!gradients.ok()) return gradients.status();
  lap();
  auto pushed = worker->Push(*step, {gradients->bundle, {}});
  int64_t push = lap();
  if (!pushed.ok()) return pushed.status();
  ps::PullSpec nothing;
  nothing.all_dense = false;
  auto awaited = worker->Pull(*step + 1, nothing);
  int64_t wait = lap();
  if (!awaited.ok()) return awaited.status();
  printf("step %llu %.9g %lld %lld %lld\n",
         static_cast<unsigned long long>(*step), gradients->loss,
         static_cast<long long>(pull), static_cast<long long>(push),
         static_cast<long long>(wait));
  fflush(stdout);
  ++*step;
  return absl::OkStatus();
}

void PrintPaths(const ps::Worker& worker) {
  const ps::TrainingConnection::Channels& channels =
      worker.connection().channels();
  for (size_t i = 0; i < channels.size(); ++i) {
    printf("path %zu %s\n", i, examples::DescribePath(*channels[i]).c_str());
  }
}

// Blocks at the gate before `step`. Returns the step up to which to train.
absl::StatusOr<uint64_t> PassGate(uint64_t step) {
  printf("gate %llu\n", static_cast<unsigned long long>(step));
  fflush(stdout);
  std::string line;
  uint64_t limit;
  if (!std::getline(std::cin, line) || !absl::SimpleAtoi(line, &limit) ||
      limit < step) {
    return absl::AbortedError(
        absl::StrCat("the gate has closed: '", line, "' at step ", step));
  }
  return limit;
}

absl::Status PrintResult(const Flags& flags, const Dataset& digits,
                         ps::Worker* worker) {
  absl::StatusOr<ps::Pulled> final = worker->Pull(flags.steps);
  if (!final.ok()) return final.status();
  const tensor::Bundle variables = final->AllDense();
  auto accuracy = Accuracy(variables, digits.test);
  if (!accuracy.ok()) return accuracy.status();
  auto gradients = ComputeGradients(variables, digits.train);
  if (!gradients.ok()) return gradients.status();
  printf("result %.9g %.9g\n", *accuracy, gradients->loss);
  return absl::OkStatus();
}

absl::Status TrainAll(const Flags& flags, const Part& part, const Images& train,
                      ps::Worker* worker) {
  uint64_t limit = flags.gate ? 0 : flags.steps;
  for (uint64_t step = worker->clock(); step < flags.steps;) {
    while (step >= limit) {
      absl::StatusOr<uint64_t> passed = PassGate(step);
      if (!passed.ok()) return passed.status();
      limit = *passed;
    }
    absl::Status status = TrainStep(flags, part, train, worker, &step);
    if (!status.ok()) return status;
  }
  return flags.gate ? PassGate(flags.steps).status() : absl::OkStatus();
}

// Joins the training. The chief defines the model; other workers wait for the
// definition.
absl::StatusOr<std::unique_ptr<ps::Worker>> Join(const Flags& flags,
                                                 const Part& part) {
  if (part.rank != 0) {
    auto connection = ps::TrainingConnection::Open(
        {part.channels, absl::Minutes(1), true, part.connect});
    if (!connection.ok()) return connection.status();
    return ps::Worker::Join({*connection, part.rank});
  }
  auto defined = ps::Define({part.channels, part.servers,
                             ModelOf(flags.hidden, flags.training),
                             absl::Minutes(10), absl::nullopt, part.connect});
  if (!defined.ok()) return defined.status();
  auto worker = ps::Worker::Join({defined->connection, part.rank});
  if (!worker.ok() || !defined->wants_values) return worker;
  auto values = InitialValues(flags.hidden, flags.seed);
  if (!values.ok()) return values.status();
  absl::Status status = (*worker)->Initialize(*values);
  if (!status.ok()) return status;
  return worker;
}

absl::Status TrainToTheEnd(const Flags& flags, const Part& part,
                           const Dataset& digits, ps::Worker* worker) {
  absl::Status status = TrainAll(flags, part, digits.train, worker);
  if (!status.ok()) return status;
  PrintPaths(*worker);
  if (part.rank == 0) status = PrintResult(flags, digits, worker);
  return status;
}

// Trains as a worker until the end of the training. Continues after servers
// were restarted from a checkpoint.
absl::Status RunWorker(const Flags& flags, const Part& part,
                       const Dataset& digits) {
  auto joined = Join(flags, part);
  if (!joined.ok()) return joined.status();
  std::unique_ptr<ps::Worker> worker = *std::move(joined);
  while (true) {
    const absl::Status status =
        TrainToTheEnd(flags, part, digits, worker.get());
    if (status.ok()) break;
    auto again = ps::Reattach(worker->options(), status);
    if (!again.ok()) return again.status();
    worker = *std::move(again);
    std::cerr << absl::StrCat("digits_worker: servers were restarted: worker ",
                              part.rank, " continues at step ", worker->clock(),
                              "\n");
  }
  worker->Leave();
  return absl::OkStatus();
}

absl::Status RunEvaluator(const Flags& flags, const Part& part,
                          const Dataset& digits) {
  EvaluatorOptions options;
  auto connection =
      ps::TrainingConnection::Open({part.channels, options.patience});
  if (!connection.ok()) return connection.status();
  ps::Reader reader(*connection);
  options.steps = flags.steps;
  options.every = flags.every;
  return Evaluate(options, &reader,
                  [&](uint64_t version, const tensor::Bundle& variables) {
                    auto accuracy = Accuracy(variables, digits.test);
                    if (!accuracy.ok()) return accuracy.status();
                    printf("evaluated %llu %.9g\n",
                           static_cast<unsigned long long>(version), *accuracy);
                    fflush(stdout);
                    return absl::OkStatus();
                  });
}

constexpr char kUnlimited[] = "unlimited";

int64_t StalenessIn(const std::string& text) {
  int64_t steps = ps::ConsistencyPolicy::kUnlimited;
  if (text != kUnlimited && !absl::SimpleAtoi(text, &steps)) return -1;
  return steps;
}

// Checks a staleness for CLI11. Returns the error, or "" if there is none.
std::string CheckStaleness(const std::string& text) {
  return StalenessIn(text) >= 0
             ? ""
             : absl::StrCat(text, " is no number of steps, and not '",
                            kUnlimited, "'");
}

absl::Status Run(const Flags& flags) {
  absl::StatusOr<Part> part =
      flags.servers.empty() ? PartFromEnvironment() : PartFromFlags(flags);
  if (!part.ok()) return part.status();
  absl::Status tls = flags.tls.Check();
  if (!tls.ok()) return tls;
  auto security = ps::ClientSecurity(flags.tls);
  if (!security.ok()) return security.status();
  auto secret = ps::ReadSecretToSend(flags.secret);
  if (!secret.ok()) return secret.status();
  if (ps::membership::IsTarget(flags.servers)) {
    absl::Status found = FindServers(flags.servers, &*part);
    if (!found.ok()) return found;
  }
  part->channels =
      examples::Connect(part->servers, *security, *secret, flags.stock);
  part->connect = examples::Connector(*security, *secret, flags.stock);
  absl::StatusOr<Dataset> digits = LoadDigits(EmbeddedCsv(), flags.seed);
  if (!digits.ok()) return digits.status();
  // Allocate gradients in the pool, so that they are sent in place.
  if (!flags.stock) {
    tensor::SetDefaultAllocator(tensor::PoolAllocator<penstock::Allocator>());
  }
  return part->evaluator ? RunEvaluator(flags, *part, *digits)
                         : RunWorker(flags, *part, *digits);
}

}  // namespace
}  // namespace penstock::digits

int main(int argc, char** argv) {
  penstock::ps::KeepTlsAtExit();
  penstock::digits::Flags flags;
  CLI::App app("Digits: one worker of a training");
  auto* servers = app.add_option("--servers", flags.servers,
                                 "addresses, with commas; or "
                                 "etcd://HOST:PORT/PREFIX; else TF_CONFIG");
  app.add_option("--rank", flags.rank, "0 is the chief")->needs(servers);
  app.add_option("--workers", flags.workers)
      ->check(CLI::PositiveNumber)
      ->needs(servers);
  app.add_flag("--evaluator", flags.evaluator, "watches, outside the barrier")
      ->needs(servers);
  app.add_option("--every", flags.every, "steps between two evaluations")
      ->check(CLI::PositiveNumber);
  app.add_option("--steps", flags.steps)->check(CLI::PositiveNumber);
  app.add_option("--batch", flags.batch, "images a step and worker")
      ->check(CLI::PositiveNumber);
  app.add_option("--hidden", flags.hidden)->check(CLI::Range(1, 32768));
  app.add_option("--learning-rate", flags.training.learning_rate)
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option_function<std::string>(
         "--staleness",
         [&flags](const std::string& text) {
           flags.training.staleness = penstock::digits::StalenessIn(text);
         },
         "steps that a worker may be ahead of the slowest: 0 (synchronous), a "
         "number, or 'unlimited' (asynchronous)")
      ->check(penstock::digits::CheckStaleness)
      ->default_str("0");
  app.add_option("--seed", flags.seed);
  app.add_option("--ca", flags.tls.ca,
                 "use TLS, and trust servers with a certificate signed by one "
                 "of this PEM file")
      ->check(CLI::ExistingFile);
  app.add_option("--cert", flags.tls.cert, "the certificate to show (PEM)")
      ->check(CLI::ExistingFile);
  app.add_option("--key", flags.tls.key, "its private key (PEM)")
      ->check(CLI::ExistingFile);
  app.add_option("--secret", flags.secret,
                 "a file with the secret that the servers require")
      ->check(CLI::ExistingFile);
  app.add_flag("--stock", flags.stock, "stock gRPC, without Penstock");
  app.add_flag("--gate", flags.gate,
               "wait for lines on standard input: the step to train up to");
  CLI11_PARSE(app, argc, argv);
  absl::Status status = penstock::digits::Run(flags);
  if (status.ok()) return 0;
  std::cerr << absl::StrCat("digits_worker: ", status.ToString(), "\n");
  return 1;
}
