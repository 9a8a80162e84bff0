// Pushes to parameter servers on command, and prints how long each push took.
// cost.py and step.py run it.
//
//   replicas_worker --servers=HOST:PORT,... --table=dense|rows --bytes=N
//
// Prints "ready", and then, for each line "SECONDS" of its input, one line of
// numbers: the microseconds of each push. With --compute-us=N, the numbers are
// those of whole steps: a pull, N microseconds of work on a core, and a push.

#include "ps/client/worker.h"

#include <CLI/CLI.hpp>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "penstock/penstock.h"
#include "ps/client/define.h"
#include "ps/consistency/policy.h"
#include "ps/model/model.h"
#include "tensor_service/status.h"
#include "tensor_service/tensor.h"

namespace penstock::bench {
namespace {

constexpr int64_t kDim = 16;
constexpr char kTable[] = "t";

struct Flags {
  std::string servers;
  std::string table = "dense";
  int64_t bytes = 1 << 20;
  bool is_synchronous = false;
  int64_t compute_us = -1;  // negative: no steps, only pushes
};

ps::Model ModelOf(const Flags& flags) {
  ps::TableSpec table;
  table.name = kTable;
  table.optimizer.schedule.learning_rate = 0.01;
  if (!flags.is_synchronous)
    table.staleness = ps::ConsistencyPolicy::kUnlimited;
  if (flags.table == "dense") {
    table.rows = ps::DenseSpec{tensor::DType::kF32, {flags.bytes / 4}};
  } else {
    ps::SparseSpec rows;
    rows.dim = kDim;
    table.rows = rows;
  }
  ps::Model model;
  model.tables = {table};
  return model;
}

absl::StatusOr<ps::StepGradients> GradientsOf(const Flags& flags) {
  ps::StepGradients gradients;
  const bool is_dense = flags.table == "dense";
  const int64_t rows = flags.bytes / 4 / kDim;
  tensor::Shape shape = {rows, kDim};
  if (is_dense) shape = {flags.bytes / 4};
  auto values = tensor::Tensor::Of<float>(
      shape, std::vector<float>(static_cast<size_t>(flags.bytes / 4), 1e-3F));
  if (!values.ok()) return values.status();
  if (is_dense) {
    gradients.dense.tensors = {{kTable, *values}};
    return gradients;
  }
  std::vector<uint64_t> ids;
  for (int64_t i = 0; i < rows; ++i) ids.push_back(static_cast<uint64_t>(i));
  gradients.rows.push_back({kTable, std::move(ids), *values});
  return gradients;
}

absl::StatusOr<std::unique_ptr<ps::Worker>> Join(const Flags& flags) {
  ps::Definition definition;
  definition.addresses = absl::StrSplit(flags.servers, ',');
  for (const std::string& address : definition.addresses) {
    definition.servers.push_back(grpc::CreateCustomChannel(
        address, Credentials(grpc::InsecureChannelCredentials(), {}),
        tensor::UnlimitedMessages()));
  }
  definition.model = ModelOf(flags);
  const auto defined = ps::Define(definition);
  if (!defined.ok()) return defined.status();
  auto worker = ps::Worker::Join({defined->connection, 0});
  if (!worker.ok() || !defined->wants_values) return worker;
  tensor::Bundle first;
  const auto zeros = tensor::Tensor::Of<float>(
      {flags.bytes / 4},
      std::vector<float>(static_cast<size_t>(flags.bytes / 4)));
  if (!zeros.ok()) return zeros.status();
  if (flags.table == "dense") first.tensors = {{kTable, *zeros}};
  absl::Status set = (*worker)->Initialize(first);
  if (!set.ok()) return set;
  return worker;
}

ps::PullSpec PullOf(const ps::StepGradients& gradients) {
  ps::PullSpec pull;
  for (const auto& each : gradients.rows) {
    pull.rows.push_back({each.table, each.ids});
  }
  return pull;
}

// Keeps a core busy, as a worker that computes gradients does.
void Compute(absl::Duration time) {
  const absl::Time end = absl::Now() + time;
  while (absl::Now() < end) continue;
}

absl::Status Step(const Flags& flags, const ps::PullSpec& pull,
                  const ps::StepGradients& gradients, uint64_t step,
                  ps::Worker* worker) {
  if (flags.compute_us >= 0) {
    absl::Status pulled = worker->Pull(step, pull).status();
    if (!pulled.ok()) return pulled;
    Compute(absl::Microseconds(flags.compute_us));
  }
  return worker->Push(step, gradients).status();
}

absl::Status Run(const Flags& flags) {
  const auto worker = Join(flags);
  if (!worker.ok()) return worker.status();
  const auto gradients = GradientsOf(flags);
  if (!gradients.ok()) return gradients.status();
  const ps::PullSpec pull = PullOf(*gradients);
  uint64_t step = (*worker)->clock();
  std::cout << "ready" << std::endl;
  double seconds = 0;
  while (std::cin >> seconds) {
    const absl::Time end = absl::Now() + absl::Seconds(seconds);
    for (absl::Time now = absl::Now(); now < end;) {
      absl::Status done = Step(flags, pull, *gradients, step++, worker->get());
      if (!done.ok()) return done;
      const absl::Time then = absl::Now();
      std::cout << absl::ToInt64Microseconds(then - now) << ' ';
      now = then;
    }
    std::cout << std::endl;
  }
  (*worker)->Leave();
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  Flags flags;
  CLI::App app("Pushes to parameter servers on command");
  app.add_option("--servers", flags.servers)->required();
  app.add_option("--table", flags.table)
      ->check(CLI::IsMember({"dense", "rows"}));
  app.add_option("--bytes", flags.bytes)->check(CLI::PositiveNumber);
  app.add_flag("--synchronous", flags.is_synchronous);
  app.add_option("--compute-us", flags.compute_us);
  CLI11_PARSE(app, argc, argv);
  const absl::Status status = Run(flags);
  if (status.ok()) return 0;
  std::cerr << "replicas_worker: " << status << "\n";
  return 1;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
