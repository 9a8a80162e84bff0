#include "transport/metrics/registry.h"

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace metrics {
namespace {

// Counts under its own lock, like a connection.
class Counting : public Source, public std::enable_shared_from_this<Counting> {
 public:
  void Count(uint64_t messages) {
    base::MutexLock lock(&mu_);
    ++started_;
    messages_ += messages;
  }

  std::shared_ptr<Source> Keep() override { return weak_from_this().lock(); }
  void Collect(Snapshot* snapshot) override {
    base::MutexLock lock(&mu_);
    snapshot->Add(Metric::kMessages,
                  {Fabric::kShm, Kind::kEager, Direction::kSent}, messages_);
    snapshot->Add(Metric::kStreams, {Role::kClient}, 1);
    Histogram times;
    for (uint64_t i = 0; i < started_; ++i) times.Record(1);
    snapshot->Add(Metric::kAnnouncedSeconds, {Fabric::kShm}, times);
  }

 private:
  base::Mutex mu_;
  uint64_t started_ = 0;
  uint64_t messages_ = 0;
  const Registration registration_{this};
};

uint64_t MessagesOf(const Snapshot& snapshot) {
  return snapshot.Get(Metric::kMessages,
                      {Fabric::kShm, Kind::kEager, Direction::kSent});
}

uint64_t CallsOf(const Snapshot& snapshot) {
  return snapshot.Get(Metric::kAnnouncedSeconds, {Fabric::kShm});
}

uint64_t LiveOf(const Snapshot& snapshot) {
  return snapshot.Get(Metric::kStreams, {Role::kClient});
}

TEST(Registry, KeepsCountersOfWhatHasEndedAndDropsItsGauges) {
  const uint64_t before = MessagesOf(Registry::Get()->Collect());
  {
    auto source = std::make_shared<Counting>();
    source->Count(7);
    const Snapshot during = Registry::Get()->Collect();
    EXPECT_EQ(MessagesOf(during), before + 7);
    EXPECT_EQ(LiveOf(during), 1u);
  }
  const Snapshot after = Registry::Get()->Collect();
  EXPECT_EQ(MessagesOf(after), before + 7);
  EXPECT_EQ(LiveOf(after), 0u);
}

TEST(Registry, CountsWhatHasNoOwner) {
  const auto refused = [] {
    return Registry::Get()->Collect().Get(Metric::kRefused, {Refusal::kFlood});
  };
  const uint64_t before = refused();
  Registry::Get()->Count(Metric::kRefused, {Refusal::kFlood});
  EXPECT_EQ(refused(), before + 1);
}

TEST(Registry, LevelsEndWithTheirOwners) {
  const auto used = [] {
    return Registry::Get()->Collect().Get(Metric::kPoolUsed, {Pool::kShm});
  };
  {
    Level one(Metric::kPoolUsed, {Pool::kShm}, 10);
    Level other(Metric::kPoolUsed, {Pool::kShm});
    other.Add(5);
    other.Subtract(2);
    EXPECT_EQ(used(), 13u);
    one.Set(4);
    EXPECT_EQ(used(), 7u);
  }
  EXPECT_EQ(used(), 0u);
}

// Tests a source whose lock is held for a long time. Only scrapers may wait.
TEST(Registry, SourcesComeAndGoWhileAScrapeWaitsForOne) {
  class Busy : public Source {
   public:
    std::shared_ptr<Source> Keep() override {
      return std::shared_ptr<Source>(this, [](Source*) {});
    }
    void Collect(Snapshot*) override {
      entered = true;
      while (!let_go) std::this_thread::yield();
    }
    std::atomic<bool> entered{false};
    std::atomic<bool> let_go{false};
  };
  Busy busy;
  Registry registry;
  registry.Add(&busy);
  std::thread scrape([&] { registry.Collect(); });
  while (!busy.entered) std::this_thread::yield();
  auto other = std::make_shared<Counting>();
  registry.Add(other.get());
  registry.Remove(other.get());
  registry.Count(Metric::kRefused, {Refusal::kFlood});
  busy.let_go = true;
  scrape.join();
  registry.Remove(&busy);
}

class Program {
 public:
  explicit Program(uint64_t seed) : seed_(seed) {}

  // Sources begin, count and end on several threads, while others scrape.
  void Run() {
    const Snapshot before = Registry::Get()->Collect();
    std::vector<std::thread> threads;
    for (uint64_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, i] { BeginCountAndEnd(seed_ + i * 7919); });
    }
    std::atomic<bool> done{false};
    std::vector<std::thread> scrapers;
    for (int i = 0; i < 2; ++i) {
      scrapers.emplace_back([&] { Scrape(before, &done); });
    }
    for (std::thread& thread : threads) thread.join();
    done = true;
    for (std::thread& thread : scrapers) thread.join();
    const Snapshot after = Registry::Get()->Collect();
    EXPECT_EQ(MessagesOf(after) - MessagesOf(before), messages_.load());
    EXPECT_EQ(CallsOf(after) - CallsOf(before), calls_.load());
    EXPECT_EQ(LiveOf(after), LiveOf(before));
  }

 private:
  static constexpr uint64_t kThreads = 4;

  void BeginCountAndEnd(uint64_t seed) {
    std::mt19937_64 random(seed);
    std::vector<std::shared_ptr<Counting>> mine;
    for (int i = 0; i < 3000; ++i) {
      const uint64_t what = random() % 8;
      if (what < 2 || mine.empty()) {
        mine.push_back(std::make_shared<Counting>());
      } else if (what < 4) {
        mine.erase(mine.begin() +
                   static_cast<std::ptrdiff_t>(random() % mine.size()));
      } else {
        const uint64_t messages = random() % 100;
        // Increases the total before the source has the messages. A scrape must
        // never show more messages than the total.
        messages_ += messages;
        ++calls_;
        mine[random() % mine.size()]->Count(messages);
      }
    }
  }

  // Collects while others count. A count that was seen once must stay in later
  // results, and nothing may be counted twice.
  void Scrape(const Snapshot& before, const std::atomic<bool>* done) {
    uint64_t last = MessagesOf(before);
    uint64_t last_calls = CallsOf(before);
    while (!*done) {
      const Snapshot now = Registry::Get()->Collect();
      EXPECT_GE(MessagesOf(now), last);
      EXPECT_GE(CallsOf(now), last_calls);
      last = MessagesOf(now);
      last_calls = CallsOf(now);
      EXPECT_LE(last - MessagesOf(before), messages_.load());
    }
  }

  const uint64_t seed_;
  std::atomic<uint64_t> messages_{0};
  std::atomic<uint64_t> calls_{0};
};

// Runs random programs. METRICS_SEED=N repeats the run with seed N.
TEST(Registry, SumsNeitherLoseNorRepeatWhateverBeginsAndEnds) {
  const char* set = std::getenv("METRICS_SEED");
  const uint64_t seed =
      set != nullptr ? std::strtoull(set, nullptr, 10) : std::random_device()();
  std::cout << "METRICS_SEED=" << seed << "\n";
  for (uint64_t i = 0; i < 10; ++i) {
    SCOPED_TRACE(seed + i);
    Program(seed + i).Run();
  }
}

}  // namespace
}  // namespace metrics
}  // namespace penstock
