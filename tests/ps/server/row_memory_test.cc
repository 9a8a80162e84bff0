// Tests steps of sparse tables for which the heap has no memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/ps/server/small_server.h"

namespace {

// The size of an allocation that only the computation of the mean makes in
// these tests.
constexpr size_t kLarge = size_t{1} << 20;
std::atomic<bool> is_full{false};
std::atomic<int> refused{0};

void* Allocate(size_t size) {
  if (size >= kLarge && is_full) {
    ++refused;
    return nullptr;
  }
  return std::malloc(size);
}

}  // namespace

// Replaces the operator of the whole program.
void* operator new(size_t size) {
  if (void* memory = Allocate(size)) return memory;
  throw std::bad_alloc();
}
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size);
}
void* operator new[](size_t size, const std::nothrow_t&) noexcept {
  return Allocate(size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }

namespace penstock::ps {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr View kView = SmallServer::kView;
constexpr int64_t kIds = 2000;
constexpr uint32_t kDim = 256;

class RowMemoryTest : public testing::Test {
 protected:
  void TearDown() override { is_full = false; }

  // Makes two workers push for a step whose mean finds no memory.
  void PushWithoutMemory(absl::Duration max_wait) {
    Server::Options options;
    options.membership.expected_workers = 2;
    options.max_wait = max_wait;
    server_ = std::make_unique<SmallServer>(options);
    ASSERT_TRUE(
        server_->Define({{DenseTable("w", {2}), SparseTable("users", kDim)}})
            .ok());
    for (const WorkerId& worker : kWorkers) {
      ASSERT_TRUE((*server_)->Join(kView, worker).ok());
    }
    ASSERT_TRUE(
        (*server_)
            ->Initialize(kView, kWorkers[0], {{Floats("w", {2}, {10, 20})}})
            .ok());
    const std::vector<float> rows(kIds * kDim, 4);
    std::vector<tensor::Bundle> pushes;
    for (const int64_t first : {int64_t{0}, kIds / 2}) {
      pushes.push_back({{Floats("w", {2}, {1, 2}), IdsFrom(first),
                         Floats("users", {kIds, kDim}, rows)}});
    }
    is_full = true;
    for (size_t i = 0; i < 2; ++i) {
      ASSERT_TRUE(server_->Push(kWorkers[i], 0, pushes[i]).ok());
    }
  }

  static tensor::NamedTensor IdsFrom(int64_t first) {
    std::vector<int64_t> ids(kIds);
    std::iota(ids.begin(), ids.end(), first);
    return Ids("users", ids);
  }

  const WorkerId kWorkers[2] = {{0, 11}, {1, 12}};
  std::unique_ptr<SmallServer> server_;
};

TEST_F(RowMemoryTest, AStepWaitsForMemoryAndIsTakenOnceByAllTables) {
  refused = 0;
  ASSERT_NO_FATAL_FAILURE(PushWithoutMemory(absl::Minutes(10)));
  const auto pull = server_->StartPull(kWorkers[0], 1, {{IdsFrom(0)}});
  while (refused < 3) std::this_thread::yield();
  EXPECT_FALSE(pull.is_there());
  is_full = false;
  const auto pulled = Answer<Server::Pulled>(pull).Wait();
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_THAT(ElementsOf(pulled->bundle.tensors[0].tensor), ElementsAre(9, 18));
  const std::vector<float> rows = ElementsOf(pulled->bundle.tensors[1].tensor);
  ASSERT_EQ(rows.size(), kIds * kDim);
  const auto half = rows.begin() + rows.size() / 2;
  EXPECT_THAT(std::vector<float>(rows.begin(), half),
              Each(-2));  // one push is applied
  EXPECT_THAT(std::vector<float>(half, rows.end()), Each(-4));  // both have
}

TEST_F(RowMemoryTest, WithoutMemoryForTooLongTheTrainingEnds) {
  ASSERT_NO_FATAL_FAILURE(PushWithoutMemory(absl::Milliseconds(200)));
  const auto snapshot = (*server_)->TakeSnapshot(kView, CutPoint::OfVersion(1),
                                                 {}, absl::Minutes(10));
  EXPECT_EQ(snapshot.status().code(), absl::StatusCode::kAborted)
      << snapshot.status();
  EXPECT_THAT(std::string(snapshot.status().message()),
              HasSubstr("table users: there is no memory"));
}

}  // namespace
}  // namespace penstock::ps
