// Tests that memory does not grow with time. A mixed load must need as much
// memory in a long run as in a short one, and almost none afterwards. Measures
// shared memory, which only Penstock uses, and the heap separately. Counts only
// allocated memory of the heap, because malloc keeps freed memory. With large
// messages, malloc keeps up to 64 MiB for each of eight arenas per core, even
// with stock gRPC.

#include <dirent.h>
#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <ostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/e2e/stack_test.h"

namespace penstock::e2e {
namespace {

constexpr int kThreads = 8;
constexpr int kChannels = 3;
constexpr int kCallsPerThread = 40;
constexpr size_t kLargest = 3 * 1024 * 1024 + 512 * 1024;
// Additional memory of the arena's segments (docs/memory.md). Under load, this
// is the difference to the next larger segment. When idle, it is the first
// segment, which stays.
constexpr uint64_t kSlackKib = 64 * 1024;
constexpr uint64_t kIdleKib = 16 * 1024;
// The allowed growth of the heap. gRPC keeps some memory after its first use,
// and blocks for the largest number of large messages that were received at
// once (docs/memory.md). All messages together are gigabytes, far more than
// this.
constexpr uint64_t kHeapSlackKib = (8 + 64) * 1024;
// The time in which an idle process must free its memory. A segment of the
// arena is freed within 10 s.
constexpr std::chrono::seconds kIdlePatience(30);

struct Memory {
  uint64_t shared_kib = 0;
  uint64_t heap_kib = 0;  // allocated by malloc's users
};

std::ostream& operator<<(std::ostream& out, const Memory& memory) {
  return out << memory.shared_kib << " KiB shared, " << memory.heap_kib
             << " KiB of the heap";
}

// Returns the arena's memory from the system, touched or not.
uint64_t SharedKib() {
  uint64_t blocks = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (const dirent* entry = readdir(folder)) {
    char target[64] = "";
    if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) <
            0 ||
        !absl::StartsWith(target, "/memfd:penstock-arena")) {
      continue;
    }
    struct stat status;
    if (fstat(std::atoi(entry->d_name), &status) == 0) {
      blocks += status.st_blocks;
    }
  }
  closedir(folder);
  return blocks / 2;
}

Memory Measure() {
  const struct mallinfo2 heap = mallinfo2();
  return Memory{SharedKib(), (heap.uordblks + heap.hblkhd) / 1024};
}

class MemoryPlateauTest : public ServiceTest {
 protected:
  // Returns a size that is uniform in half of the cases and log-uniform in the
  // others. Most bytes then belong to large messages, and many messages are
  // small.
  static size_t AnySize(std::mt19937* random) {
    std::uniform_real_distribution<double> share(0, 1);
    if ((*random)() % 2 == 0)
      return static_cast<size_t>(share(*random) * kLargest);
    return static_cast<size_t>(std::exp(share(*random) * std::log(kLargest)));
  }

  static void Calls(TestService::Stub* stub, uint32_t seed) {
    std::mt19937 random(seed);
    for (int i = 0; i < kCallsPerThread; ++i) {
      Call call;
      SimpleRequest request;
      *request.mutable_payload() = ZeroPayload(AnySize(&random));
      request.set_response_size(static_cast<int>(AnySize(&random)));
      SimpleResponse response;
      const grpc::Status status = stub->UnaryCall(&call, request, &response);
      ASSERT_TRUE(status.ok()) << status.error_message();
    }
  }

  // Runs a load on its own channels. Returns its peak memory.
  Memory MixedLoad(uint32_t seed) {
    std::vector<std::unique_ptr<TestService::Stub>> stubs;
    for (int i = 0; i < kChannels; ++i) {
      stubs.push_back(TestService::NewStub(NewChannel()));
    }
    std::vector<std::thread> threads;
    for (uint32_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&stubs, seed, i] {
        Calls(stubs[i % kChannels].get(), seed * kThreads + i);
      });
    }
    for (std::thread& thread : threads) thread.join();
    return Measure();
  }
};

TEST_P(MemoryPlateauTest, OfAMixedLoadIsFlatAndGoesBackWhenItIsOver) {
  constexpr uint32_t kRounds = 4;
  uint64_t first_half = 0;
  Memory last;
  const Memory warm = MixedLoad(0);
  for (uint32_t round = 1; round <= kRounds; ++round) {
    last = MixedLoad(round);
    RecordProperty("round" + std::to_string(round),
                   testing::PrintToString(last));
    if (round <= kRounds / 2) {
      first_half = std::max(first_half, last.shared_kib);
    } else {
      EXPECT_LE(last.shared_kib, first_half + kSlackKib) << round;
    }
  }
  const auto end = std::chrono::steady_clock::now() + kIdlePatience;
  while (SharedKib() > kIdleKib && std::chrono::steady_clock::now() < end) {
    std::this_thread::yield();
  }
  EXPECT_GT(first_half, kIdleKib);  // some memory must be released
  EXPECT_LE(SharedKib(), kIdleKib);
  EXPECT_LE(Measure().heap_kib, warm.heap_kib + kHeapSlackKib);
}

INSTANTIATE_TEST_SUITE_P(Over, MemoryPlateauTest, testing::Values(Path::kShm),
                         PathName());

}  // namespace
}  // namespace penstock::e2e
