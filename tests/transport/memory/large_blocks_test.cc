#include "transport/memory/large_blocks.h"

#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace memory {
namespace {

constexpr size_t kMiB = 1024 * 1024;

int64_t PageFaults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt;
}

TEST(LargeBlocks, UsesMemoryForOneBlockAfterAnother) {
  auto blocks = LargeBlocks::Create(64 * kMiB);
  const uint8_t* const first = blocks->Allocate(3 * kMiB).get();
  EXPECT_EQ(blocks->kept_bytes(), 3 * kMiB);
  // Expects the same memory for all sizes that round up to its size.
  const std::shared_ptr<uint8_t> second = blocks->Allocate(3 * kMiB - 1000);
  EXPECT_EQ(second.get(), first);
  EXPECT_EQ(blocks->kept_bytes(), 0u);
}

TEST(LargeBlocks, HaveRoomForWhatWasAskedForAndLittleMore) {
  auto blocks = LargeBlocks::Create(SIZE_MAX);
  for (size_t size : {kMiB, kMiB + 1, 5 * kMiB - 1, 33 * kMiB + 4097}) {
    std::shared_ptr<uint8_t> block = blocks->Allocate(size);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block.get()) % 4096, 0u);
    memset(block.get(), 1, size);  // asan sees a write beyond the end
    block = nullptr;
    const size_t kept = blocks->kept_bytes();
    EXPECT_GE(kept, size);
    EXPECT_LE(kept, size + size / 8 + 4096);
    blocks = LargeBlocks::Create(SIZE_MAX);
  }
}

TEST(LargeBlocks, DoesNotHandOutMemoryInUse) {
  auto blocks = LargeBlocks::Create(64 * kMiB);
  const std::shared_ptr<uint8_t> first = blocks->Allocate(kMiB);
  const std::shared_ptr<uint8_t> second = blocks->Allocate(kMiB);
  EXPECT_NE(first, second);
}

TEST(LargeBlocks, DropsWhatWasKeptLongestBeyondTheLimit) {
  auto blocks = LargeBlocks::Create(4 * kMiB);
  std::vector<std::shared_ptr<uint8_t>> used;
  for (size_t size : {1, 2, 3}) used.push_back(blocks->Allocate(size * kMiB));
  const uint8_t* const last = used[2].get();
  for (auto& block : used) block = nullptr;
  EXPECT_EQ(blocks->kept_bytes(), 3 * kMiB);
  EXPECT_EQ(blocks->Allocate(3 * kMiB).get(), last);
}

TEST(LargeBlocks, DoesNotKeepMoreThanTheLimit) {
  auto blocks = LargeBlocks::Create(4 * kMiB);
  blocks->Allocate(5 * kMiB);
  EXPECT_EQ(blocks->kept_bytes(), 0u);
}

TEST(LargeBlocks, SaysWhereThereIsNoMemory) {
  auto blocks = LargeBlocks::Create(4 * kMiB);
  for (size_t size : {SIZE_MAX, SIZE_MAX - 4096, SIZE_MAX / 2 + 1}) {
    EXPECT_EQ(blocks->Allocate(size), nullptr);
  }
}

TEST(LargeBlocks, MayBeOutlivedByABlock) {
  auto blocks = LargeBlocks::Create(4 * kMiB);
  const std::shared_ptr<uint8_t> block = blocks->Allocate(kMiB);
  blocks = nullptr;
  memset(block.get(), 1, kMiB);
}

TEST(LargeBlocks, MessagesAfterTheFirstFaultInNoPages) {
  constexpr size_t kSize = 48 * kMiB;  // glibc unmaps such blocks at once
  const auto receive = [] {
    absl::StatusOr<Block> block = AllocateBlock(kSize);
    ASSERT_TRUE(block.ok());
    memset(block->data.get(), 1, kSize);
  };
  receive();
  const int64_t before = PageFaults();
  for (int i = 0; i < 10; ++i) receive();
  // Expects far fewer page faults than 122,880, which is one fault for each
  // page. Allows for the faults that asan causes.
  EXPECT_LT(PageFaults() - before, 12000);
}

TEST(LargeBlocks, ChildrenOfForksMayUseThem) {
  std::atomic<bool> ends{false};
  std::thread busy([&ends] {
    while (!ends) ASSERT_TRUE(AllocateBlock(kMiB).ok());
  });
  for (int i = 0; i < 200; ++i) {
    const absl::StatusOr<Block> before = AllocateBlock(kMiB);
    ASSERT_TRUE(before.ok());
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      _exit(AllocateBlock(2 * kMiB).ok() ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    ASSERT_EQ(status, 0) << "fork " << i;
  }
  ends = true;
  busy.join();
}

TEST(LargeBlocks, FreesWhatWasNotUsedBetweenTwoLooks) {
  auto blocks = LargeBlocks::Create(64 * kMiB);
  blocks->Allocate(3 * kMiB);
  blocks->FreeIdle();
  EXPECT_EQ(blocks->kept_bytes(), 3 * kMiB);
  blocks->Allocate(2 * kMiB);
  blocks->FreeIdle();
  EXPECT_EQ(blocks->kept_bytes(), 2 * kMiB);
  blocks->Allocate(2 * kMiB);  // used again
  blocks->FreeIdle();
  EXPECT_EQ(blocks->kept_bytes(), 2 * kMiB);
  blocks->FreeIdle();
  EXPECT_EQ(blocks->kept_bytes(), 0u);
}

// Returns the number of resident pages in a range, which may be unmapped.
int ResidentPages(uint8_t* data, size_t size) {
  std::vector<unsigned char> pages(size / sysconf(_SC_PAGESIZE));
  if (mincore(data, size, pages.data()) != 0) return 0;
  return static_cast<int>(
      std::count_if(pages.begin(), pages.end(),
                    [](unsigned char page) { return (page & 1) != 0; }));
}

TEST(LargeBlocks, PagesOfIdleBlocksGoBackToTheSystem) {
  auto blocks = LargeBlocks::Create(64 * kMiB);
  // Makes glibc free a larger block. Afterwards glibc takes smaller blocks from
  // its heap.
  blocks->Allocate(4 * kMiB);
  blocks->FreeIdle();
  blocks->FreeIdle();
  std::shared_ptr<uint8_t> block = blocks->Allocate(kMiB);
  // Keeps the heap from shrinking.
  const std::shared_ptr<uint8_t> behind = blocks->Allocate(kMiB);
  uint8_t* const data = block.get();
  memset(data, 1, kMiB);
  block = nullptr;
  EXPECT_GT(ResidentPages(data, kMiB), 200);
  blocks->FreeIdle();
  blocks->FreeIdle();
  EXPECT_LE(ResidentPages(data, kMiB), 2) << "the heap's own words";
}

TEST(LargeBlocks, TimerRunsWhileBlocksAreKept) {
  auto blocks = LargeBlocks::Create(64 * kMiB);
  int starts = 0;
  bool works = false;
  blocks->SetTimer([&starts, &works] {
    ++starts;
    return works;
  });
  EXPECT_EQ(starts, 0);
  blocks->Allocate(kMiB);
  blocks->Allocate(kMiB);
  EXPECT_EQ(starts, 2) << "tried again, because it did not start";
  works = true;
  blocks->Allocate(kMiB);
  blocks->Allocate(kMiB);
  EXPECT_EQ(starts, 3);
  blocks->FreeIdle();  // keeps the block for some time
  EXPECT_EQ(starts, 4);
  blocks->FreeIdle();
  ASSERT_EQ(blocks->kept_bytes(), 0u);
  EXPECT_EQ(starts, 4);
  blocks->Allocate(kMiB);
  EXPECT_EQ(starts, 5);
}

TEST(LargeBlocks, ThreadsDoNotShareMemoryInUse) {
  auto blocks = LargeBlocks::Create(8 * kMiB);
  std::vector<std::thread> threads;
  for (uint8_t id = 1; id <= 4; ++id) {
    threads.emplace_back([blocks, id] {
      std::mt19937 random(id);
      for (int i = 0; i < 500; ++i) {
        const size_t size = kMiB + random() % (2 * kMiB);
        const std::shared_ptr<uint8_t> block = blocks->Allocate(size);
        block.get()[0] = block.get()[size - 1] = id;
        std::this_thread::yield();
        ASSERT_EQ(block.get()[0], id);
        ASSERT_EQ(block.get()[size - 1], id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(blocks->kept_bytes(), 8 * kMiB);
}

}  // namespace
}  // namespace memory
}  // namespace penstock
