// Tests what an arena does while the kernel clears the pages of a new segment.
// The kernel does this in fallocate(), which the test replaces.

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "transport/fabric/shm/arena.h"
#include "transport/progress/event_loop.h"

namespace {

// A replacement for fallocate(). Can stop calls or let them fail, and counts
// them.
class Kernel {
 public:
  int Fallocate(int fd, int mode, off_t offset, off_t size) {
    std::unique_lock<std::mutex> lock(mu_);
    ++calls_;
    changed_.wait(lock, [this] { return !is_stopped_; });
    if (has_no_memory_) {
      errno = ENOSPC;
      return -1;
    }
    lock.unlock();
    return static_cast<int>(syscall(SYS_fallocate, fd, mode, offset, size));
  }
  void Reset() {
    std::lock_guard<std::mutex> lock(mu_);
    calls_ = 0;
    is_stopped_ = false;
    has_no_memory_ = false;
  }
  void Stop() {
    std::lock_guard<std::mutex> lock(mu_);
    is_stopped_ = true;
  }
  void Continue() {
    std::lock_guard<std::mutex> lock(mu_);
    is_stopped_ = false;
    changed_.notify_all();
  }
  void HaveNoMemory() {
    std::lock_guard<std::mutex> lock(mu_);
    has_no_memory_ = true;
  }
  int calls() {
    std::lock_guard<std::mutex> lock(mu_);
    return calls_;
  }

 private:
  std::mutex mu_;
  std::condition_variable changed_;
  int calls_ = 0;
  bool is_stopped_ = false;
  bool has_no_memory_ = false;
};

Kernel& TheKernel() {
  static auto* const kernel = new Kernel;
  return *kernel;
}

}  // namespace

extern "C" int fallocate(int fd, int mode, off_t offset, off_t size) {
  return TheKernel().Fallocate(fd, mode, offset, size);
}

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr uint64_t kMiB = 1 << 20;

class ArenaGrowth : public testing::Test {
 protected:
  ArenaGrowth() { TheKernel().Reset(); }

  void Use(uint64_t mib) {
    leases_.push_back(arena_->Allocate(mib * kMiB).value());
  }
  bool WaitForCalls(int calls) {
    return WaitUntil([=] { return TheKernel().calls() == calls; });
  }
  bool WaitForReserved(uint64_t mib) {
    return WaitUntil([=] { return arena_->reserved() == mib * kMiB; });
  }
  // Returns when the arena has looked for idle segments a few times.
  static void WaitForLooks() {
    absl::Notification looked;
    progress::EventLoop* const loop = progress::EventLoop::Get().value();
    ASSERT_NE(loop->RunAfter(absl::Milliseconds(10), [&] { looked.Notify(); }),
              0u);
    looked.WaitForNotification();
  }

  std::shared_ptr<Arena> arena_ = Arena::Create(
      256 * kMiB, HugePages::kOff, /*idle_time=*/absl::Milliseconds(1));
  std::vector<std::shared_ptr<ArenaLease>> leases_;
};

TEST_F(ArenaGrowth, RequestsThatFindRoomDoNotWait) {
  Use(8);
  TheKernel().Stop();
  std::thread grower([this] { EXPECT_TRUE(arena_->Allocate(12 * kMiB).ok()); });
  EXPECT_TRUE(WaitForCalls(2));
  absl::Notification done;
  std::thread other([&] {
    EXPECT_TRUE(arena_->Allocate(kMiB).ok());
    EXPECT_EQ(arena_->used(), 8 * kMiB);
    done.Notify();
  });
  EXPECT_TRUE(done.WaitForNotificationWithTimeout(kTestDeadline));
  TheKernel().Continue();
  grower.join();
  other.join();
}

TEST_F(ArenaGrowth, RequestsWithoutRoomWaitForOneSegment) {
  arena_ = Arena::Create(256 * kMiB, HugePages::kOff);
  Use(12);
  TheKernel().Stop();
  std::vector<std::thread> growers;
  for (int i = 0; i < 3; ++i) {
    growers.emplace_back([this] {
      const auto lease = arena_->Allocate(6 * kMiB);
      ASSERT_TRUE(lease.ok()) << lease.status();
      EXPECT_EQ((*lease)->place().segment_size, 32 * kMiB);
    });
  }
  EXPECT_TRUE(WaitForCalls(2));
  TheKernel().Continue();
  for (std::thread& grower : growers) grower.join();
  EXPECT_EQ(TheKernel().calls(), 2);
}

TEST_F(ArenaGrowth, RequestsThatWaitGetTheError) {
  Use(12);
  TheKernel().Stop();
  TheKernel().HaveNoMemory();
  std::vector<std::thread> growers;
  for (int i = 0; i < 3; ++i) {
    growers.emplace_back([this] {
      const absl::Status status = arena_->Allocate(6 * kMiB).status();
      EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
    });
  }
  EXPECT_TRUE(WaitForCalls(2));
  TheKernel().Continue();
  for (std::thread& grower : growers) grower.join();
  EXPECT_EQ(TheKernel().calls(), 2);
}

TEST_F(ArenaGrowth, TheNextSegmentIsReadyBeforeItIsNeeded) {
  Use(13);
  EXPECT_TRUE(WaitForReserved(16 + 32));
  TheKernel().Stop();  // a request for a new segment would hang
  Use(20);
  EXPECT_EQ(leases_[1]->place().segment_size, 32 * kMiB);
  EXPECT_EQ(TheKernel().calls(), 2);
  TheKernel().Continue();
}

TEST_F(ArenaGrowth, ASpareSegmentIsKeptWhileMemoryIsScarce) {
  Use(13);
  EXPECT_TRUE(WaitForReserved(16 + 32));
  WaitForLooks();
  Use(1);
  EXPECT_EQ(arena_->reserved(), (16 + 32) * kMiB);
  EXPECT_EQ(TheKernel().calls(), 2);
  leases_.clear();
  EXPECT_TRUE(WaitForReserved(16));
}

TEST_F(ArenaGrowth, AFailedPreparationHarmsNoRequestThatFindsRoom) {
  Use(12);
  TheKernel().HaveNoMemory();
  Use(1);
  EXPECT_TRUE(WaitForCalls(2));
  WaitForLooks();
  Use(1);
  Use(1);
  WaitForLooks();
  EXPECT_EQ(TheKernel().calls(), 2);
}

TEST_F(ArenaGrowth, APreparedSegmentLeavesAsMuchOfTheBudget) {
  arena_ = Arena::Create(79 * kMiB, HugePages::kOff);
  Use(13);
  Use(63);  // would not fit next to a prepared segment of 32 MiB
  EXPECT_EQ(arena_->reserved(), 79 * kMiB);

  leases_.clear();
  arena_ = Arena::Create(80 * kMiB, HugePages::kOff);
  Use(13);
  EXPECT_TRUE(WaitForReserved(48));
  for (uint64_t mib : {31, 32}) Use(mib);
  EXPECT_TRUE(absl::IsResourceExhausted(arena_->Allocate(8 * kMiB).status()));
  EXPECT_EQ(arena_->reserved(), 80 * kMiB);
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
