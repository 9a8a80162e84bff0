// Tests operations on operands that peers read in place.

#include "collectives/host/pool.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "collectives/host/group.h"
#include "collectives/reduction/reduction.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/host/ranks.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

constexpr DType kType = DType::kF32;
constexpr int64_t kCount = 64 * 1024;

HostGroupOptions WithPool(int ranks) {
  HostGroupOptions options;
  options.ranks = ranks;
  options.slot_bytes = 64 * 1024;  // less than an operand
  options.pool_bytes = 4 << 20;
  return options;
}

// Runs each operation once on large operands at `in`.
absl::Status RunAll(HostGroup* group, float* in) {
  std::vector<float> result(kCount * group->ranks());
  float* const out = result.data();
  const std::function<absl::Status()> operations[] = {
      [&] { return group->AllReduce(ReduceOp::kSum, kType, in, in, kCount); },
      [&] { return group->Broadcast(kType, in, kCount, 1); },
      [&] { return group->Reduce(ReduceOp::kSum, kType, in, out, kCount, 1); },
      [&] { return group->Gather(kType, in, out, kCount, 1); },
      [&] { return group->AllGather(kType, in, out, kCount); },
      [&] { return group->Scatter(kType, in, out, kCount, 1); },
      [&] { return group->AllToAll(kType, in, out, kCount); },
      [&] {
        return group->ReduceScatter(ReduceOp::kSum, kType, in, out, kCount);
      },
  };
  for (const auto& operation : operations) {
    absl::Status status = operation();
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

// Returns the numbers at the end of the description of the group.
std::string Uses(const HostGroup& group) {
  const std::string text = group.Describe();
  return text.substr(text.find(": ") + 2);
}

TEST(Pool, OperandsOfAllOperationsAreReadInPlace) {
  RunRanks(WithPool(3), [](HostGroup* group) {
    auto memory = group->Allocate(3 * kCount * sizeof(float));
    ASSERT_TRUE(memory.ok()) << memory.status();
    auto* const in = static_cast<float*>((*memory)->data());
    std::fill_n(in, 3 * kCount, 1.0F);
    const absl::Status status = RunAll(group, in);
    EXPECT_TRUE(status.ok()) << status;
    EXPECT_EQ(Uses(*group), "8 large operations read it in place, 0 copied");
  });
}

// Rank 1 is the root. No rank reads the root's operand of a gather, nor the
// other ranks' operands of a broadcast and a scatter.
TEST(Pool, OneOperandElsewhereMakesAllRanksCopy) {
  for (const int outside : {0, 1}) {
    RunRanks(WithPool(3), [&](HostGroup* group) {
      std::vector<float> heap(3 * kCount, 1.0F);
      auto memory = group->Allocate(3 * kCount * sizeof(float));
      ASSERT_TRUE(memory.ok()) << memory.status();
      auto* const pool = static_cast<float*>((*memory)->data());
      std::fill_n(pool, 3 * kCount, 1.0F);
      const absl::Status status =
          RunAll(group, group->rank() == outside ? heap.data() : pool);
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(Uses(*group),
                outside == 1 ? "1 large operations read it in place, 7 copied"
                             : "2 large operations read it in place, 6 copied");
    });
  }
}

TEST(Pool, SmallOperandsAreCopied) {
  RunRanks(WithPool(2), [](HostGroup* group) {
    auto memory = group->Allocate(4096);
    ASSERT_TRUE(memory.ok()) << memory.status();
    auto* const in = static_cast<float*>((*memory)->data());
    float out[8] = {};
    EXPECT_TRUE(group->AllGather(kType, in, out, 4).ok());
    EXPECT_TRUE(group->ReduceScatter(ReduceOp::kSum, kType, in, out, 4).ok());
    EXPECT_EQ(Uses(*group), "0 large operations read it in place, 0 copied");
  });
}

TEST(Pool, MismatchIsReportedBeforeAnOperandIsRead) {
  RunRanks(WithPool(2), [](HostGroup* group) {
    auto memory = group->Allocate(2 * kCount * sizeof(float));
    ASSERT_TRUE(memory.ok()) << memory.status();
    void* const in = (*memory)->data();
    std::vector<float> out(2 * kCount);
    // Rank 1 publishes half of the bytes that rank 0 would read.
    const int64_t count = group->rank() == 0 ? kCount : kCount / 2;
    const absl::Status status = group->AllToAll(kType, in, out.data(), count);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
    EXPECT_TRUE(absl::StrContains(status.message(),
                                  absl::StrCat("calls all_to_all of ", kCount)))
        << status;
    EXPECT_EQ(Uses(*group), "0 large operations read it in place, 0 copied");
  });
}

// Memory whose first access waits. Only one at a time.
class Trap {
 public:
  explicit Trap(size_t bytes) {
    bytes_ = bytes;
    data_ = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(data_, MAP_FAILED);
    reached_ = opened_ = false;
    struct sigaction action = {};
    action.sa_handler = &Trap::Wait;
    sigaction(SIGSEGV, &action, &before_);
  }
  ~Trap() {
    sigaction(SIGSEGV, &before_, nullptr);
    munmap(data_, bytes_);
  }
  Trap(const Trap&) = delete;
  Trap& operator=(const Trap&) = delete;

  void* data() const { return data_; }
  static void AwaitAccess() {
    while (!reached_) std::this_thread::yield();
  }
  static void Open() { opened_ = true; }

 private:
  static void Wait(int) {
    reached_ = true;
    while (!opened_) {
    }
    if (mprotect(data_, bytes_, PROT_READ | PROT_WRITE) != 0) _exit(3);
  }

  static inline void* data_;
  static inline size_t bytes_;
  static inline std::atomic<bool> reached_, opened_;
  struct sigaction before_ = {};
};

// Rank 0 gives up while rank 1 reads its operand, and then changes the operand.
// Rank 1 must not return that as a result.
TEST(Pool, AnOperandThatChangesAfterAnErrorIsNoResult) {
  Trap trap(2 * kCount * sizeof(float));
  std::promise<void> checked;
  RunRanks(WithPool(2), [&](HostGroup* group) {
    auto memory = group->Allocate(kCount * sizeof(float));
    ASSERT_TRUE(memory.ok()) << memory.status();
    auto* const in = static_cast<float*>((*memory)->data());
    std::fill_n(in, kCount, 1.0F);
    if (group->rank() == 1) {
      const absl::Status status =
          group->Gather(kType, in, trap.data(), kCount, 1);
      EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
      return checked.set_value();
    }
    std::thread aborts([&] {
      Trap::AwaitAccess();
      group->Abort();
    });
    const absl::Status status = group->Gather(kType, in, nullptr, kCount, 1);
    EXPECT_EQ(status.code(), absl::StatusCode::kCancelled) << status;
    std::fill_n(in, kCount, 2.0F);
    Trap::Open();
    aborts.join();
    checked.get_future().wait();
  });
}

}  // namespace
}  // namespace penstock::collectives
