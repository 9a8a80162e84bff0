// Tests readers of a variable and its writer. A version that a reader holds
// must not change.

#include "ps/dense/versioned_tensor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "absl/types/optional.h"
#include "tests/ps/seeds.h"

namespace penstock::ps {
namespace {

using tensor::Tensor;

constexpr int64_t kElements = 1000;
constexpr size_t kBytes = kElements * sizeof(float);

Tensor Filled(float value) {
  return *Tensor::Of<float>({kElements}, std::vector<float>(kElements, value));
}

// Writes a version. Each element of a version is the version's number.
void Write(VersionedTensor* variable) {
  const auto number = static_cast<float>(variable->Current().number + 1);
  Tensor next = *variable->Next();
  const char* const memory = next.bytes().data();
  absl::Span<float> elements = *next.mutable_flat<float>();
  ASSERT_EQ(reinterpret_cast<char*>(elements.data()), memory) << "it was read";
  std::fill(elements.begin(), elements.end(), number);
  variable->Publish(std::move(next));
}

bool IsWhole(const VersionedTensor::Version& version) {
  const absl::Span<const float> elements = *version.value.flat<float>();
  const auto number = static_cast<float>(version.number);
  return std::count(elements.begin(), elements.end(), number) == kElements;
}

TEST(VersionedTensorTest, StartsWithWhatItIsGiven) {
  const Tensor first = Filled(0);
  const VersionedTensor variable(first);
  const VersionedTensor::Version current = variable.Current();
  EXPECT_EQ(current.number, 0u);
  EXPECT_EQ(current.value.bytes().data(), first.bytes().data());
  EXPECT_EQ(variable.held_bytes(), kBytes);
}

TEST(VersionedTensorTest, WithoutReadersTwoBuffersTakeTurns) {
  VersionedTensor variable(Filled(0));
  std::set<const char*> memory;
  for (int i = 0; i < 100; ++i) {
    Write(&variable);
    memory.insert(variable.Current().value.bytes().data());
  }
  EXPECT_EQ(memory.size(), 2u);
  EXPECT_EQ(variable.held_bytes(), 2 * kBytes);
}

TEST(VersionedTensorTest, AVersionThatIsForgoneChangesNothing) {
  VersionedTensor variable(Filled(0));
  Write(&variable);
  { const Tensor dropped = *variable.Next(); }
  EXPECT_EQ(variable.Current().number, 1u);
  EXPECT_TRUE(IsWhole(variable.Current()));
  Write(&variable);
  EXPECT_TRUE(IsWhole(variable.Current()));
}

// Tests that read-only first values are never written to. Such values are in a
// message, or in memory that the program has wrapped.
TEST(VersionedTensorTest, FirstValuesThatAreReadOnlyAreNotWrittenTo) {
  const std::vector<float> first(kElements, 0);
  bool released = false;
  VersionedTensor variable(*Tensor::FromBuffer(
      tensor::DType::kF32, {kElements},
      tensor::Buffer::Wrap(const_cast<float*>(first.data()), kBytes,
                           /*writable=*/false, [&] { released = true; })));
  for (int i = 0; i < 10; ++i) Write(&variable);
  EXPECT_EQ(first, std::vector<float>(kElements, 0));
}

// Tests first values in the memory of a message. Later versions cannot use this
// memory, because it is read-only. The memory is released with the first
// version, unless a reader holds it.
TEST(VersionedTensorTest, FirstValuesThatAreReadOnlyAreNotKept) {
  std::vector<float> first(kElements, 0);
  bool released = false;
  VersionedTensor variable(*Tensor::FromBuffer(
      tensor::DType::kF32, {kElements},
      tensor::Buffer::Wrap(first.data(), kBytes, /*writable=*/false,
                           [&] { released = true; })));
  absl::optional<VersionedTensor::Version> reader = variable.Current();
  Write(&variable);
  EXPECT_FALSE(released);
  EXPECT_EQ(variable.held_bytes(), 2 * kBytes);
  reader.reset();
  Write(&variable);
  EXPECT_TRUE(released);
  EXPECT_EQ(variable.held_bytes(), 2 * kBytes);
}

// An allocator that counts the allocated memory.
class Counting final : public tensor::Allocator {
 public:
  absl::StatusOr<std::shared_ptr<tensor::Buffer>> Allocate(
      size_t bytes) override {
    auto buffer = tensor::HeapAllocator()->Allocate(bytes);
    if (buffer.ok()) given_.insert((*buffer)->data());
    return buffer;
  }
  bool HasGiven(const VersionedTensor::Version& version) const {
    return given_.count(version.value.bytes().data()) > 0;
  }

 private:
  std::set<const char*> given_;
};

// Tests that all versions except the first are in the allocator's memory.
// Devices may be unable to send from the first version's memory.
TEST(VersionedTensorTest, AllButTheFirstLieInTheAllocatorsMemory) {
  Counting allocator;
  VersionedTensor variable(Filled(0), &allocator);
  for (int i = 0; i < 10; ++i) {
    Write(&variable);
    EXPECT_TRUE(allocator.HasGiven(variable.Current())) << i;
  }
}

// Tests readers that come and go at random. A naive model computes what each
// reader must see, and how much memory is needed.
void RunAtRandom(uint64_t seed) {
  std::mt19937 random(seed);
  VersionedTensor variable(Filled(0));
  std::vector<VersionedTensor::Version> held;
  for (int step = 0; step < 300; ++step) {
    const uint32_t choice = random() % 3;
    if (choice == 0) {
      Write(&variable);
    } else if (choice == 1) {
      held.push_back(variable.Current());
    } else if (!held.empty()) {
      held.erase(held.begin() + random() % held.size());
    }
    std::set<uint64_t> needed = {variable.Current().number};
    for (const auto& version : held) {
      ASSERT_TRUE(IsWhole(version)) << "at step " << step;
      needed.insert(version.number);
    }
    ASSERT_GE(variable.held_bytes(), needed.size() * kBytes);
    if (choice != 0) continue;
    // Allows one more version than needed: the next version.
    ASSERT_LE(variable.held_bytes(), (needed.size() + 1) * kBytes);
  }
}

TEST(VersionedTensorTest, WhatReadersHoldStaysWhatItWas) {
  RunEachSeed([](uint64_t seed) { RunAtRandom(seed); });
}

TEST(VersionedTensorTest, NoReaderSeesAVersionThatIsHalfWritten) {
  VersionedTensor variable(Filled(0));
  std::atomic<bool> done{false};
  std::atomic<int> torn{0};
  std::vector<std::thread> readers;
  for (int i = 0; i < 3; ++i) {
    readers.emplace_back([&] {
      uint64_t last = 0;
      while (!done) {
        const VersionedTensor::Version version = variable.Current();
        if (!IsWhole(version) || version.number < last) ++torn;
        last = version.number;
      }
    });
  }
  for (int i = 0; i < 2000; ++i) Write(&variable);
  done = true;
  for (std::thread& reader : readers) reader.join();
  EXPECT_EQ(torn, 0);
}

class NoMemory final : public tensor::Allocator {
 public:
  absl::StatusOr<std::shared_ptr<tensor::Buffer>> Allocate(size_t) override {
    return absl::ResourceExhaustedError("no memory");
  }
};

TEST(VersionedTensorTest, WithoutMemoryTheCurrentVersionStays) {
  NoMemory none;
  VersionedTensor variable(Filled(0), &none);
  EXPECT_EQ(variable.Next().status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(IsWhole(variable.Current()));
}

}  // namespace
}  // namespace penstock::ps

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, /*count=*/200);
}
