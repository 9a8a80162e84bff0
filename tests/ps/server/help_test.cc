// Tests small steps on the server's thread and on a helping thread. The result
// must be the same. The helper may come in time, late or not at all.

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/ps/seeds.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

constexpr View kView = SmallServer::kView;
constexpr int64_t kElements = 100;

Server::Options WorkersOf(uint32_t count) {
  Server::Options options;
  options.membership.expected_workers = count;
  options.membership.lease = absl::Hours(1);
  return options;
}

WorkerId WorkerOf(uint32_t rank) { return {rank, 1 + rank}; }

// Returns a gradient of 1. The learning rate is 1, too.
tensor::Bundle Ones(const std::string& name, int64_t elements = kElements) {
  return {{Floats(name, {elements}, std::vector<float>(elements, 1))}};
}

void Begin(SmallServer* server, int64_t staleness, uint32_t workers,
           int64_t elements = kElements) {
  Model model;
  model.tables.push_back(DenseTable("w", {elements}, staleness));
  ASSERT_TRUE(server->Define(model).ok());
  for (uint32_t rank = 0; rank < workers; ++rank) {
    ASSERT_TRUE((*server)->Join(kView, WorkerOf(rank)).ok());
  }
  const tensor::Bundle zeroes = {
      {Floats("w", {elements}, std::vector<float>(elements))}};
  ASSERT_TRUE((*server)->Initialize(kView, WorkerOf(0), zeroes).ok());
}

// Returns the common value of all elements. All elements are equal, because
// readers never see half a step.
float ElementOf(const tensor::Tensor& value) {
  const std::vector<float> elements = ElementsOf(value);
  for (const float element : elements) EXPECT_EQ(element, elements[0]);
  return elements.empty() ? 0 : elements[0];
}

float ElementOf(const absl::StatusOr<Server::Pulled>& pulled) {
  EXPECT_TRUE(pulled.ok()) << pulled.status();
  return pulled.ok() ? ElementOf(pulled->bundle.tensors[0].tensor) : 0;
}

Answer<Server::PushVerdict> StartPush(SmallServer* server, uint32_t rank,
                                      uint64_t clock, bool will_help,
                                      int64_t elements = kElements) {
  Answer<Server::PushVerdict> answer;
  (*server)->Push(kView, WorkerOf(rank), clock, Ones("w", elements),
                  answer.callback(), will_help);
  return answer;
}

TEST(HelpTest, WhoHelpsAppliesTheStep) {
  SmallServer server(WorkersOf(1));
  Begin(&server, 0, 1);
  // Allows for pulls that the server's own thread answers, because it sometimes
  // wakes first. This thread must still answer some pulls.
  int answered_here = 0;
  for (uint64_t step = 0; step < 50; ++step) {
    ASSERT_TRUE(StartPush(&server, 0, step, true).Wait().ok());
    std::thread::id ran_on;
    absl::Notification is_there;
    Server::PullSpec spec;
    spec.worker = WorkerOf(0);
    spec.clock = step + 1;
    spec.all_parts = true;
    server->Pull(kView, spec, [&](const absl::StatusOr<Server::Pulled>& got) {
      EXPECT_EQ(ElementOf(got), -static_cast<float>(step + 1));
      ran_on = std::this_thread::get_id();
      is_there.Notify();
    });
    server->Help();
    is_there.WaitForNotification();
    answered_here += ran_on == std::this_thread::get_id() ? 1 : 0;
  }
  EXPECT_GT(answered_here, 0);
}

TEST(HelpTest, StepThatNobodyHelpsWithIsApplied) {
  SmallServer server(WorkersOf(1));
  Begin(&server, 0, 1);
  for (uint64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(StartPush(&server, 0, step, true).Wait().ok());
    EXPECT_EQ(ElementOf(server.Pull(WorkerOf(0), step + 1)),
              -static_cast<float>(step + 1));
  }
}

TEST(HelpTest, LargeStepIsTheThreads) {
  constexpr int64_t kMany = (int64_t{512} << 10) / 4 + 1;
  SmallServer server(WorkersOf(1));
  Begin(&server, 0, 1, kMany);
  for (uint64_t step = 0; step < 5; ++step) {
    ASSERT_TRUE(StartPush(&server, 0, step, true, kMany).Wait().ok());
    server->Help();
    EXPECT_EQ(ElementOf(server.Pull(WorkerOf(0), step + 1)),
              -static_cast<float>(step + 1));
  }
}

TEST(HelpTest, SnapshotOfAStepIsNotPassedBy) {
  for (const uint64_t version : {1, 3, 5}) {
    SmallServer server(WorkersOf(1));
    Begin(&server, 0, 1);
    absl::Notification waits;
    std::thread taker([&] {
      const auto snapshot = server->TakeSnapshot(
          kView, CutPoint::OfVersion(version), {}, absl::Seconds(60),
          [&](uint64_t ticket) { waits.Notify(); });
      ASSERT_TRUE(snapshot.ok()) << snapshot.status();
      EXPECT_EQ(snapshot->parts[0].steps, version);
    });
    waits.WaitForNotification();
    for (uint64_t step = 0; step < 8; ++step) {
      ASSERT_TRUE(server.Pull(WorkerOf(0), step).ok());
      ASSERT_TRUE(StartPush(&server, 0, step, true).Wait().ok());
      server->Help();
    }
    taker.join();
  }
}

TEST(HelpTest, HelpBeforeThereIsAModelDoesNothing) {
  SmallServer server;
  server->Help();
  server->Drain();
  server->Help();
}

// A random program with a thread for each of:
//   - each worker, which pushes kSteps steps
//   - snapshots
//   - helping all the time, in half of the programs
class Program {
 public:
  explicit Program(uint64_t seed)
      : random_(seed),
        workers_(static_cast<uint32_t>(1 + random_() % 3)),
        server_(WorkersOf(workers_)) {}

  void Run() {
    constexpr int64_t kStaleness[] = {0, 1, ConsistencyPolicy::kUnlimited};
    staleness_ = kStaleness[random_() % 3];
    Begin(&server_, staleness_, workers_);
    std::vector<std::thread> threads;
    if (random_() % 2 == 0) {
      threads.emplace_back([this] {
        while (at_work_ > 0) server_->Help();
      });
    }
    threads.emplace_back([this] { TakeSnapshots(); });
    at_work_ = workers_;
    for (uint32_t rank = 0; rank < workers_; ++rank) {
      threads.emplace_back([this, rank, seed = random_()] {
        Work(rank, seed);
        --at_work_;
      });
    }
    for (std::thread& thread : threads) thread.join();
    const uint64_t steps = staleness_ == 0 ? kSteps : kSteps * workers_;
    while (server_->report().held_bytes > 0) {
      ASSERT_TRUE(server_->TakeSnapshot(kView, {}, {}, absl::Seconds(60)).ok());
    }
    EXPECT_EQ(ElementOf(server_.Pull(absl::nullopt, 0)),
              -static_cast<float>(steps));
    EXPECT_EQ(server_->report().pushes.counted, kSteps * workers_);
  }

 private:
  static constexpr uint64_t kSteps = 30;

  void Work(uint32_t rank, uint64_t seed) {
    std::mt19937_64 random(seed);
    float last = 0;
    for (uint64_t step = 0; step < kSteps; ++step) {
      const float element = ElementOf(server_.Pull(WorkerOf(rank), step));
      if (staleness_ == 0) {
        EXPECT_EQ(element, -static_cast<float>(step));
      }
      EXPECT_LE(element, last);
      last = element;
      const bool will_help = random() % 4 != 0;
      auto pushed = StartPush(&server_, rank, step, will_help);
      // Helps in most rounds: some callers never help, and some help late.
      if (will_help && random() % 16 != 0) {
        if (random() % 4 == 0) std::this_thread::yield();
        server_->Help();
      }
      const auto verdict = pushed.Wait();
      ASSERT_TRUE(verdict.ok()) << verdict.status();
      EXPECT_EQ(*verdict, Server::PushVerdict::kCounted);
    }
  }

  // Takes snapshots. A snapshot of a synchronous table belongs to one step, and
  // a helping thread must not go beyond that step.
  void TakeSnapshots() {
    const bool is_synchronous = staleness_ == 0;
    for (uint64_t version = 1; version <= kSteps; version += 7) {
      absl::optional<CutPoint> wanted;
      if (is_synchronous) wanted = CutPoint::OfVersion(version);
      const auto snapshot =
          server_->TakeSnapshot(kView, wanted, {}, absl::Seconds(60));
      // Continues if the table is already past that step.
      if (absl::IsOutOfRange(snapshot.status())) continue;
      ASSERT_TRUE(snapshot.ok()) << snapshot.status();
      const DensePart::Snapshot& part = snapshot->parts[0];
      EXPECT_EQ(ElementOf(part.value), -static_cast<float>(part.steps));
      if (is_synchronous) {
        EXPECT_EQ(part.steps, version);
      }
    }
  }

  std::mt19937_64 random_;
  const uint32_t workers_;
  SmallServer server_;
  int64_t staleness_ = 0;
  std::atomic<int> at_work_{1};
};

TEST(HelpTest, ValuesAreWhatThePushesMakeOfThem) {
  RunEachSeed([](uint64_t seed) { Program(seed).Run(); });
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 15);
}
