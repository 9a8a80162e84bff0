#include "transport/paths/path_relief.h"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "gtest/gtest.h"
#include "transport/base/descriptors.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace paths {
namespace {

base::Descriptors Use(int64_t used, int64_t limit = 1000) {
  base::Descriptors now;
  now.free = limit - used;
  now.limit = limit;
  return now;
}

// Returns a PathRelief that is never destroyed, because the event loop calls it
// later. A static list keeps the object, so that LeakSanitizer reports no leak.
PathRelief* NewRelief(absl::Duration closing_time) {
  static auto* const all = new std::vector<std::unique_ptr<PathRelief>>;
  all->push_back(std::make_unique<PathRelief>(closing_time));
  return all->back().get();
}

class PathReliefTest : public testing::Test {
 protected:
  explicit PathReliefTest(absl::Duration closing_time = absl::Hours(1))
      : relief_(*NewRelief(closing_time)) {}
  // An owner that removes itself in GiveUpPath(), like a connection whose path
  // has ended.
  class Owner : public PathRelief::Owner {
   public:
    Owner(PathReliefTest* test, int number) : test_(test), number_(number) {
      id_ = test_->relief_.Add(this);
    }
    ~Owner() override { test_->relief_.Remove(id_); }
    void GiveUpPath(const absl::Status& why) override {
      EXPECT_EQ(why.code(), absl::StatusCode::kResourceExhausted);
      test_->relief_.Remove(id_);
      std::lock_guard<std::mutex> lock(test_->mu_);
      test_->given_up_.push_back(number_);
      --test_->references_;
    }
    void Ref() override {
      std::lock_guard<std::mutex> lock(test_->mu_);
      ++test_->references_;
    }

   private:
    PathReliefTest* const test_;
    const int number_;
    PathRelief::Id id_ = 0;
  };

  void AddOwners(int count) {
    for (int i = 1; i <= count; ++i) {
      owners_.push_back(std::make_unique<Owner>(this, i));
    }
  }
  std::vector<int> GivenUp() {
    std::lock_guard<std::mutex> lock(mu_);
    EXPECT_EQ(references_, 0);
    return given_up_;
  }
  // Waits until `count` owners have given up.
  void AwaitGivenUp(size_t count) {
    const auto limit =
        std::chrono::steady_clock::now() + std::chrono::seconds(10);
    while (CountGivenUp() < count && std::chrono::steady_clock::now() < limit) {
      std::this_thread::yield();
    }
  }
  size_t CountGivenUp() {
    std::lock_guard<std::mutex> lock(mu_);
    return given_up_.size();
  }

  PathRelief& relief_;
  std::mutex mu_;
  std::vector<int> given_up_;
  int references_ = 0;
  std::vector<std::unique_ptr<Owner>> owners_;
};

TEST_F(PathReliefTest, NothingIsGivenUpWhereDescriptorsAreLeft) {
  AddOwners(3);
  relief_.Relieve(Use(0));
  relief_.Relieve(Use(749));
  EXPECT_EQ(GivenUp(), std::vector<int>{});
}

TEST_F(PathReliefTest, NewestAreGivenUpFirstAndNoMoreThanNeeded) {
  AddOwners(5);
  relief_.Relieve(Use(751));
  EXPECT_EQ(GivenUp(), (std::vector<int>{5, 4}));
}

// Tests that recently given up paths count as free, because their descriptors
// are closed a moment later.
TEST_F(PathReliefTest, ThoseThatWereGivenUpJustBeforeCount) {
  AddOwners(5);
  relief_.Relieve(Use(751));
  relief_.Relieve(Use(751));
  relief_.Relieve(Use(752));
  EXPECT_EQ(GivenUp(), (std::vector<int>{5, 4, 3}));
}

class QuickPathReliefTest : public PathReliefTest {
 protected:
  QuickPathReliefTest() : PathReliefTest(absl::Milliseconds(1)) {}
};

TEST_F(QuickPathReliefTest, ThoseThatWereGivenUpLongAgoDoNotCount) {
  AddOwners(4);
  relief_.Relieve(Use(751));
  const auto limit =
      std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (GivenUp().size() < 4 && std::chrono::steady_clock::now() < limit) {
    relief_.Relieve(Use(751));
    std::this_thread::yield();
  }
  EXPECT_EQ(GivenUp(), (std::vector<int>{4, 3, 2, 1}));
}

TEST_F(PathReliefTest, AllMayBeGivenUp) {
  AddOwners(3);
  relief_.Relieve(Use(1000));
  EXPECT_EQ(GivenUp(), (std::vector<int>{3, 2, 1}));
}

TEST_F(PathReliefTest, ThoseThatHaveLeftAreLeftAlone) {
  AddOwners(3);
  owners_.pop_back();
  relief_.Relieve(Use(750));
  EXPECT_EQ(GivenUp(), std::vector<int>{2});
}

TEST_F(PathReliefTest, ConnectionIsTheTimeToLook) {
  AddOwners(2);
  relief_.OnConnection();
  rlimit before;
  getrlimit(RLIMIT_NOFILE, &before);
  // Starts the event loop first, because the loop also needs descriptors.
  ASSERT_TRUE(progress::EventLoop::Get().ok());
  const int lowest = dup(0);
  close(lowest);
  rlimit few = before;
  few.rlim_cur = static_cast<rlim_t>(lowest);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (int i = 0; i < 100; ++i) relief_.OnConnection();
  AwaitGivenUp(2);
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_EQ(GivenUp(), (std::vector<int>{2, 1}));
}

}  // namespace
}  // namespace paths
}  // namespace penstock
