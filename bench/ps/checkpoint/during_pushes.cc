// Measures the steps of a parameter server, with and without a concurrent
// checkpoint.
//
// The server and its one worker are in this process and use no connection. A
// step is a push and the wait until it is applied. In each round, the worker
// takes steps for the duration of a checkpoint, and then steps without a
// checkpoint for about as long; the order alternates. "slowed" is the reduction
// of the step rate by a checkpoint. The result is the median of the rounds.
//
// During a checkpoint, a step must copy the data that it changes: rows of a
// sparse table that are not written yet, and, once, all slots of a dense table.

#include <stdlib.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "absl/types/span.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/server/checkpoint_writer.h"
#include "ps/server/server.h"

namespace penstock::ps {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kDim = 64;
constexpr size_t kRowsOfStep = 1000;
constexpr View kView = {1, 1};
constexpr WorkerId kWorker = {0, 1};

struct Options {
  std::string folder = ".";
  uint64_t megabytes = 1000;
  int rounds = 5;
  bool sparse = false;
};

[[noreturn]] void Fail(absl::string_view what) {
  std::fprintf(stderr, "during_pushes: %.*s\n", static_cast<int>(what.size()),
               what.data());
  std::exit(1);
}

void Require(const absl::Status& status) {
  if (!status.ok()) Fail(status.ToString());
}

double SecondsSince(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A model with an Adagrad table, and the push of a step. The table is either
// dense, in 16 variables, or sparse.
class Training {
 public:
  explicit Training(const Options& options)
      : sparse_(options.sparse),
        rows_(static_cast<int64_t>(options.megabytes * 1'000'000 /
                                   (2 * kDim * sizeof(float)))),
        server_(ServerOptions()) {
    Server::Definition definition;
    definition.model = ModelOf();
    definition.servers = {"here"};
    definition.run = kView.run;
    Require(server_.Define(definition).status());
    Require(server_.Join(kView, kWorker).status());
    if (sparse_) {
      for (int64_t id = 0; id < rows_; id += kRowsOfStep) PushRows(id);
    } else {
      Require(server_.Initialize(kView, kWorker, Gradients()).status());
    }
  }

  Server* server() { return &server_; }

  void Step() {
    if (!sparse_) return Push(Gradients());
    PushRows(static_cast<int64_t>(random_() % static_cast<uint64_t>(rows_)));
  }

 private:
  static constexpr int kVariables = 16;

  static Server::Options ServerOptions() {
    Server::Options options;
    options.log = [](const std::string&) {};
    return options;
  }

  Model ModelOf() const {
    Model model;
    model.tables.resize(sparse_ ? 1 : kVariables);
    for (size_t i = 0; i < model.tables.size(); ++i) {
      TableSpec& table = model.tables[i];
      table.name = absl::StrCat("table", i);
      table.optimizer.rule = optim::Rule::kAdagrad;
      if (sparse_) {
        SparseSpec rows;
        rows.dim = kDim;
        table.rows = rows;
      } else {
        table.rows = DenseSpec{tensor::DType::kF32, {rows_ / kVariables, kDim}};
      }
    }
    return model;
  }

  // Returns the gradient of one dense variable. Each call takes the next
  // variable. The first call returns the gradients of all variables.
  tensor::Bundle Gradients() {
    tensor::Bundle bundle;
    if (gradient_.byte_size() == 0) {
      gradient_ = *tensor::Tensor::Allocate(tensor::DType::kF32,
                                            {rows_ / kVariables, kDim});
      const absl::Span<float> elements = *gradient_.mutable_flat<float>();
      for (float& each : elements) {
        each = static_cast<float>(random_()) * 1e-10F;
      }
      for (int i = 0; i < kVariables; ++i) {
        bundle.tensors.push_back({absl::StrCat("table", i), gradient_});
      }
      return bundle;
    }
    bundle.tensors = {{absl::StrCat("table", clock_ % kVariables), gradient_}};
    return bundle;
  }

  void PushRows(int64_t first) {
    std::vector<int64_t> ids(kRowsOfStep);
    // Spread the ids over the table, like the ids of a real batch.
    for (size_t i = 0; i < ids.size(); ++i) {
      ids[i] = (first + static_cast<int64_t>(i)) * 7919 % rows_;
    }
    std::vector<float> values(kRowsOfStep * kDim, 0.5F);
    tensor::Bundle bundle;
    bundle.tensors = {
        {"table0", *tensor::Tensor::Of<int64_t>({kRowsOfStep}, ids)},
        {"table0", *tensor::Tensor::Of<float>({kRowsOfStep, kDim}, values)}};
    Push(bundle);
  }

  void Push(const tensor::Bundle& bundle) {
    server_.Push(kView, kWorker, clock_, bundle,
                 [](absl::StatusOr<Server::PushVerdict> verdict) {
                   Require(verdict.status());
                 });
    Server::PullSpec spec;
    spec.clock = ++clock_;
    absl::Notification applied;
    server_.Pull(kView, spec, [&](absl::StatusOr<Server::Pulled> pulled) {
      Require(pulled.status());
      applied.Notify();
    });
    applied.WaitForNotification();
  }

  const bool sparse_;
  const int64_t rows_;
  std::mt19937_64 random_{1};
  tensor::Tensor gradient_;
  uint64_t clock_ = 0;
  Server server_;
};

// Takes a full checkpoint, and returns its size in bytes.
uint64_t TakeCheckpoint(CheckpointWriter* writer) {
  const auto begun = writer->Begin({kView, false, 1});
  Require(begun.status());
  const auto shard = writer->Write(begun->attempt, absl::nullopt);
  Require(shard.status());
  Require(writer->Commit(begun->attempt, {*shard}).status());
  return shard->info.bytes;
}

// Takes steps until `is_over` returns true, and returns the steps per second.
template <typename IsOver>
double StepRate(Training* training, const IsOver& is_over) {
  const auto begin = Clock::now();
  double steps = 0;
  while (!is_over()) {
    training->Step();
    ++steps;
  }
  return steps / SecondsSince(begin);
}

struct Round {
  double alone = 0;   // steps per second
  double during = 0;  // with a checkpoint
  double seconds = 0;
  uint64_t bytes = 0;
};

void StepDuring(Training* training, CheckpointWriter* writer, Round* round) {
  std::atomic<bool> is_done{false};
  const auto begin = Clock::now();
  std::thread checkpoint([&] {
    round->bytes = TakeCheckpoint(writer);
    round->seconds = SecondsSince(begin);
    is_done = true;
  });
  round->during = StepRate(training, [&] { return is_done.load(); });
  checkpoint.join();
}

void StepAlone(Training* training, double seconds, Round* round) {
  const auto begin = Clock::now();
  round->alone =
      StepRate(training, [&] { return SecondsSince(begin) >= seconds; });
}

void Run(const Options& options) {
  std::string root = options.folder + "/penstock-during-pushes-XXXXXX";
  if (mkdtemp(&root[0]) == nullptr) Fail(root);
  const auto files = checkpoint::OpenFolder(root);
  Require(files.status());
  Training training(options);
  CheckpointWriter writer(files->get(), training.server(), {});
  training.Step();
  double seconds = 0.1;
  std::vector<double> slowed;
  for (int i = 0; i < options.rounds; ++i) {
    Round round;
    if (i % 2 == 1) StepAlone(&training, seconds, &round);
    StepDuring(&training, &writer, &round);
    seconds = round.seconds;
    if (i % 2 == 0) StepAlone(&training, seconds, &round);
    slowed.push_back(100 * (1 - round.during / round.alone));
    std::printf(
        "%.0f MB in %.2f s; steps/s: %.1f alone, %.1f during; slowed %.0f %%\n",
        static_cast<double>(round.bytes) / 1e6, round.seconds, round.alone,
        round.during, slowed.back());
  }
  std::sort(slowed.begin(), slowed.end());
  std::printf("slowed: median %.0f %%   (%.0f to %.0f)\n",
              slowed[slowed.size() / 2], slowed.front(), slowed.back());
  std::filesystem::remove_all(root);
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  CLI::App app("Steps of a server, with and without a checkpoint meanwhile.");
  penstock::ps::Options options;
  app.add_option("--folder", options.folder, "where")
      ->check(CLI::ExistingDirectory);
  app.add_option("--megabytes", options.megabytes, "values and slots")
      ->check(CLI::Range(1, 8000));
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 99));
  app.add_flag("--sparse", options.sparse, "rows of 64 floats and a slot");
  CLI11_PARSE(app, argc, argv);
  penstock::ps::Run(options);
  return 0;
}
