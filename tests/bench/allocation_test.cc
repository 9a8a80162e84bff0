// Tests that small messages below gRPC allocate no heap memory.

#include <atomic>
#include <cstdlib>
#include <new>

#include "bench/micro/session_pair.h"
#include "gtest/gtest.h"

namespace {

std::atomic<int> allocations{0};

}  // namespace

// Replaces operator new in the whole program.
void* operator new(size_t size) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (void* memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace penstock::bench {
namespace {

// The number of calls before the measurement. They allocate memory that later
// calls reuse.
constexpr int kWarmUp = 1000;

TEST(Allocation, CountsThoseOfTheSetUp) {
  const int before = allocations;
  SessionPair pair;
  ASSERT_TRUE(pair.status().ok()) << pair.status();
  EXPECT_GT(allocations, before);
}

// Tests messages without an answer. The sender keeps data until it is
// acknowledged, here after 64 KiB.
TEST(Allocation, FewForManyUnansweredMessages) {
  SessionPair pair;
  ASSERT_TRUE(pair.status().ok()) << pair.status();
  pair.client.OpenStream(1);
  int before = 0;
  for (int i = 0; i < 2 * kWarmUp; ++i) {
    if (i == kWarmUp) before = allocations;
    pair.client.SendMessage();
    pair.client->Flush();
    pair.Move();
  }
  EXPECT_LE(allocations - before, kWarmUp / 20);
  EXPECT_EQ(pair.server.messages, 2 * kWarmUp);
}

TEST(Allocation, NoneForACall) {
  SessionPair pair;
  ASSERT_TRUE(pair.status().ok()) << pair.status();
  int before = 0;
  for (int i = 0; i < 2 * kWarmUp; ++i) {
    if (i == kWarmUp) before = allocations;
    pair.client.OpenStream(1 + i);
    pair.client.SendMessage();
    pair.client.HalfClose();
    pair.client->Flush();
    pair.Move();
  }
  EXPECT_EQ(allocations - before, 0);
  EXPECT_EQ(pair.client.ended, 2 * kWarmUp);
}

}  // namespace
}  // namespace penstock::bench
