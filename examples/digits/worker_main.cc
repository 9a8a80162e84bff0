// digits_worker: trains on the digits together with others of its kind.
//
// Standard output is for the program that started it, one line each:
//   step <n> <loss> <pull us> <push us> <wait us>
//   path <what carries the connection to the first server>
//   result <accuracy> <final loss>      (worker 0 only)

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "examples/digits/dataset.h"
#include "examples/digits/model.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "ps/client.h"
#include "tensor_service/status.h"
#include "transport/penstock.h"

namespace penstock::digits {
namespace {

struct Flags {
  std::string servers;
  unsigned rank = 0;
  unsigned workers = 1;
  unsigned steps = 300;
  unsigned batch = 32;
  int hidden = 512;
  unsigned seed = 1;
  bool stock = false;
};

std::vector<std::shared_ptr<grpc::Channel>> Connect(const Flags& flags) {
  Options options;
  if (flags.stock) {
    options.policy = Policy::kOff;
  } else {
    options.fabrics = std::vector<Fabric>{Fabric::kShm, Fabric::kTcp};
  }
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (absl::string_view server : absl::StrSplit(flags.servers, ',')) {
    channels.push_back(grpc::CreateCustomChannel(
        std::string(server),
        Credentials(grpc::InsecureChannelCredentials(), options),
        tensor::UnlimitedMessages()));
  }
  return channels;
}

// Microseconds since the last call, for timing one thing after another.
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

// One step; moves `step` on to the next one.
absl::Status TrainStep(const Flags& flags, const Images& train,
                       ps::Worker* worker, uint64_t* step) {
  Lap lap;
  absl::StatusOr<ps::Worker::Pulled> pulled = worker->Pull(*step);
  int64_t pull = lap();
  if (!pulled.ok()) return pulled.status();
  Images batch = BatchOf(train, *step, flags.rank, flags.workers, flags.batch);
  absl::StatusOr<Gradients> gradients =
      ComputeGradients(pulled->variables, batch);
  if (!gradients.ok()) return gradients.status();
  lap();
  auto pushed = worker->Push(*step, gradients->bundle);
  int64_t push = lap();
  if (!pushed.ok()) return pushed.status();
  absl::Status awaited = worker->Await(*step + 1);
  int64_t wait = lap();
  if (!awaited.ok()) return awaited;
  printf("step %llu %.9g %lld %lld %lld\n",
         static_cast<unsigned long long>(*step), gradients->loss,
         static_cast<long long>(pull), static_cast<long long>(push),
         static_cast<long long>(wait));
  fflush(stdout);
  *step = std::max(*step + 1, pushed->version);
  return absl::OkStatus();
}

void PrintPath(const ps::Worker& worker) {
  std::vector<PathReport> paths = DescribePaths(*worker.channels().front());
  printf("path %s\n", paths.empty() ? "stock gRPC (http2)"
                                    : paths.front().ToString().c_str());
}

absl::Status PrintResult(const Flags& flags, const Dataset& digits,
                         ps::Worker* worker) {
  absl::StatusOr<ps::Worker::Pulled> final = worker->Pull(flags.steps);
  if (!final.ok()) return final.status();
  auto accuracy = Accuracy(final->variables, digits.test);
  if (!accuracy.ok()) return accuracy.status();
  auto gradients = ComputeGradients(final->variables, digits.train);
  if (!gradients.ok()) return gradients.status();
  printf("result %.9g %.9g\n", *accuracy, gradients->loss);
  return absl::OkStatus();
}

absl::Status Run(const Flags& flags) {
  absl::StatusOr<Dataset> digits = LoadDigits(EmbeddedCsv(), flags.seed);
  if (!digits.ok()) return digits.status();
  ps::Worker::Options options;
  options.servers = Connect(flags);
  options.variables = Variables(flags.hidden);
  options.rank = flags.rank;
  auto worker = ps::Worker::Join(std::move(options));
  if (!worker.ok()) return worker.status();
  if (flags.rank == 0) {
    auto values = InitialValues(flags.hidden, flags.seed);
    if (!values.ok()) return values.status();
    absl::Status status = (*worker)->Initialize(*values);
    if (!status.ok()) return status;
  }
  for (uint64_t step = 0; step < flags.steps;) {
    absl::Status status = TrainStep(flags, digits->train, worker->get(), &step);
    if (!status.ok()) return status;
  }
  PrintPath(**worker);
  absl::Status status;
  if (flags.rank == 0) status = PrintResult(flags, *digits, worker->get());
  (*worker)->Leave();
  return status;
}

}  // namespace
}  // namespace penstock::digits

int main(int argc, char** argv) {
  penstock::digits::Flags flags;
  CLI::App app("Digits: one worker of synchronous training");
  app.add_option("--servers", flags.servers, "addresses, with commas")
      ->required();
  app.add_option("--rank", flags.rank, "0 is the chief");
  app.add_option("--workers", flags.workers)->check(CLI::PositiveNumber);
  app.add_option("--steps", flags.steps)->check(CLI::PositiveNumber);
  app.add_option("--batch", flags.batch, "images a step and worker")
      ->check(CLI::PositiveNumber);
  app.add_option("--hidden", flags.hidden)->check(CLI::Range(1, 32768));
  app.add_option("--seed", flags.seed);
  app.add_flag("--stock", flags.stock, "stock gRPC, without Penstock");
  CLI11_PARSE(app, argc, argv);
  absl::Status status = penstock::digits::Run(flags);
  if (status.ok()) return 0;
  std::cerr << absl::StrCat("digits_worker ", flags.rank, ": ",
                            status.ToString(), "\n");
  return 1;
}
