// Tests random trainings whose connections break all the time, against a simple
// model that applies each push once.
//
// clang-format off
//   Table     Gradients                     Meaning of the values
//   dense     ones                          the number of applied steps
//   rows      twos, in rows that only       whether the push was applied, and
//             this push has                 the mean of how many pushes
//   kernel N  small whole numbers, some     the sum of the sent gradients. In
//             of which error feedback       the end this is the sum of all
//             sends later                   gradients, since refused gradients
//                                           are sent again
// clang-format on
//
// Uses a learning rate of 1 and multiples of 1/2, so that all sums are exact.

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/client/reader.h"
#include "tests/ps/client/cluster.h"
#include "tests/ps/client/trainee.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

class Program {
 public:
  explicit Program(uint64_t seed)
      : random_(seed),
        staleness_(std::vector<int64_t>{
            0, 2, ConsistencyPolicy::kUnlimited}[random_() % 3]),
        workers_(1 + random_() % 2),
        cluster_(1 + random_() % 3, workers_, {}, kLease) {
    for (uint32_t rank = 0; rank < workers_; ++rank) {
      trainees_.push_back(std::make_unique<Trainee>(cluster_, rank, seed));
    }
  }

  void Run() {
    Begin();
    if (testing::Test::HasFatalFailure()) return;
    std::vector<std::thread> threads;
    threads.reserve(trainees_.size());
    for (auto& trainee : trainees_) {
      threads.emplace_back([worker = trainee.get()] { worker->Train(); });
    }
    for (std::thread& thread : threads) thread.join();
    if (!testing::Test::HasFailure()) Check();
    for (auto& trainee : trainees_) connections_ += trainee->connections();
  }

  size_t connections() const { return connections_; }

 private:
  // Returns a model of small tables. Tables with the same optimizer share a
  // pack, and are not compressed.
  Model MakeModel() const {
    Model model{{DenseSpecOf("dense", {kDense}, staleness_),
                 SparseSpecOf("rows", 1, staleness_)}};
    for (int64_t i = 0; i < kKernels; ++i) {
      model.tables.push_back(DenseSpecOf(Kernel(i), {kElements}, staleness_));
      model.tables.back().optimizer.clip_value = 1e6 + static_cast<double>(i);
    }
    return model;
  }

  void Begin() {
    Definition definition = cluster_.DefinitionOf(MakeModel());
    definition.servers = trainees_[0]->Channels();
    auto defined = UntilItLasts([&] { return Define(definition); });
    ASSERT_TRUE(defined.ok()) << defined.status();
    for (auto& trainee : trainees_) {
      trainee->Join();
      if (testing::Test::HasFatalFailure()) return;
    }
    tensor::Bundle zeros{{{"dense", Filled({kDense}, kDense, 0)}}};
    for (int64_t i = 0; i < kKernels; ++i) {
      zeros.tensors.push_back({Kernel(i), Filled({kElements}, kElements, 0)});
    }
    trainees_[0]->Initialize(zeros);
  }

  void Check() {
    for (size_t server = 0; server < cluster_.size(); ++server) {
      while (cluster_.core(server).report().held_bytes > 0) {
        std::this_thread::yield();
      }
    }
    TrainingConnection::Options open;
    open.servers = cluster_.Channels();
    reader_ = std::make_unique<Reader>(*TrainingConnection::Open(open));
    const std::vector<double> applied = CheckRows();
    for (size_t server = 0; server < cluster_.size(); ++server) {
      CheckCounts(server, applied[server]);
    }
    CheckDense(applied);
  }

  // Checks `applied`, the number of steps that a server's values show. If other
  // servers have ended a step without a worker, that worker sends an empty push
  // for the step. A synchronous step of only empty pushes changes nothing.
  void CheckCounts(size_t server, double applied) {
    uint64_t counted = 0;
    for (const auto& trainee : trainees_) {
      for (const auto& step : trainee->counted()) counted += step[server];
    }
    const ServerReport report = cluster_.core(server).report();
    EXPECT_GE(report.pushes.counted, counted) << "server " << server;
    const uint64_t empty = report.pushes.counted - counted;
    const uint64_t steps = staleness_ == 0 ? report.version : counted;
    EXPECT_LE(applied, static_cast<double>(steps)) << "server " << server;
    EXPECT_GE(applied + static_cast<double>(staleness_ == 0 ? empty : 0),
              static_cast<double>(steps))
        << "server " << server;
  }

  // Returns the steps that have moved rows, by server. A synchronous step is
  // the mean of one or two counted pushes.
  std::vector<double> CheckRows() {
    std::vector<double> sums(cluster_.size());
    for (uint32_t rank = 0; rank < workers_; ++rank) {
      const auto& counted = trainees_[rank]->counted();
      for (uint64_t step = 0; step < counted.size(); ++step) {
        PullSpec spec;
        spec.all_dense = false;
        spec.rows = {
            {"rows", Trainee::IdsOf(reader_->connection(), rank, step)}};
        const auto pulled = Pull(spec);
        EXPECT_TRUE(pulled.ok()) << pulled.status();
        if (!pulled.ok()) return sums;
        const std::vector<float> rows = Elements(pulled->Rows(0));
        moved_[{rank, step}] = rows;
        for (size_t server = 0; server < rows.size(); ++server) {
          sums[server] += rows[server] / -2;
          const bool is_right =
              rows[server] == (counted[step][server] ? -2 : 0) ||
              (staleness_ == 0 && counted[step][server] && workers_ == 2 &&
               rows[server] == -1);
          EXPECT_TRUE(is_right) << rows[server] << " by worker " << rank
                                << ", step " << step << ", server " << server;
        }
      }
    }
    return sums;
  }

  void CheckDense(const std::vector<double>& applied) {
    const auto pulled = Pull({});
    ASSERT_TRUE(pulled.ok()) << pulled.status();
    const Layout& layout = reader_->connection().layout();
    const PlacedDense& dense = layout.tables()[*layout.Find("dense")];
    const uint32_t server = layout.parts()[dense.pieces[0].part].server;
    for (const float element : Elements(*pulled->Dense("dense"))) {
      ASSERT_EQ(element, -applied[server]);
    }
    for (int64_t i = 0; i < kKernels; ++i) {
      const PlacedDense& kernel = layout.tables()[*layout.Find(Kernel(i))];
      CheckKernel(i, layout.parts()[kernel.pieces[0].part].server,
                  Elements(*pulled->Dense(Kernel(i))));
    }
  }

  // Expects that a kernel's value is the sum of all counted gradients. `moved_`
  // has the share of each push in its step.
  void CheckKernel(int64_t i, uint32_t server,
                   const std::vector<float>& elements) {
    std::vector<float> expected(kElements);
    for (uint32_t rank = 0; rank < workers_; ++rank) {
      const Trainee& trainee = *trainees_[rank];
      std::vector<float> counted(kElements);
      for (const auto& [step, sent] : trainee.sent(i)) {
        const float moved = moved_[{rank, step}][server];
        for (int64_t at = 0; at < kElements; ++at) {
          expected[at] += sent[at] * moved / 2;
          counted[at] += moved == 0 ? 0 : sent[at];
        }
      }
      EXPECT_EQ(counted, trainee.kernel(i)) << Kernel(i) << ", worker " << rank;
    }
    EXPECT_EQ(elements, expected) << Kernel(i);
  }

  absl::StatusOr<Pulled> Pull(const PullSpec& spec) {
    return reader_->Pull(0, spec, absl::Minutes(1));
  }

  std::mt19937_64 random_;
  const int64_t staleness_;
  const uint32_t workers_;
  Cluster cluster_;
  std::vector<std::unique_ptr<Trainee>> trainees_;
  std::unique_ptr<Reader> reader_;  // a worker whose connections do not break
  // For each rank and step, the values of the push's rows by server.
  std::map<std::pair<uint32_t, uint64_t>, std::vector<float>> moved_;
  size_t connections_ = 0;
};

TEST(CutRandomTest, EachPushThatCountsIsAppliedOnce) {
  Seeds& seeds = ChosenSeeds();
  size_t connections = 0;
  for (uint64_t seed = seeds.first(); seeds.Wants(seed); ++seed) {
    SCOPED_TRACE(RepeatWith(seed));
    Program program(seed);
    program.Run();
    if (HasFailure()) return;
    connections += program.connections();
  }
  seeds.Print();
  // Expects so many connections that they have broken in the middle of calls.
  EXPECT_GT(connections, 12 * seeds.ran());
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 20);
}
