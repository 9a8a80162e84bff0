// Tests operations on more than 2^31 and more than 2^32 bytes. Needs 5 GiB of
// memory.

#include <sys/mman.h>

#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "collectives/net/group.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/collectives/host/ranks.h"
#include "tests/collectives/net/ranks.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

constexpr int64_t kNeededKiB = int64_t{6} << 20;
// The distance between bytes that are written and compared.
constexpr int64_t kStride = int64_t{1} << 26;

// Returns the free memory of the machine, or 0 if it is unknown.
int64_t AvailableKiB() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  int64_t kib = 0;
  while (file >> name >> kib) {
    if (name == "MemAvailable:") return kib;
    std::getline(file, name);
  }
  return 0;
}

// Zeroed memory.
class Region {
 public:
  explicit Region(int64_t bytes)
      : bytes_(bytes),
        data_(static_cast<uint8_t*>(
            mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))) {
    EXPECT_NE(data_, MAP_FAILED);
  }
  ~Region() { munmap(data_, bytes_); }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;

  uint8_t* data() { return data_; }
  // Disables huge pages, so that unwritten pages take no memory.
  void KeepSmall() { (void)madvise(data_, bytes_, MADV_NOHUGEPAGE); }
  // Returns the places that a test writes: every kStride bytes, and the last.
  std::vector<int64_t> Places() const {
    std::vector<int64_t> places;
    for (int64_t i = 0; i < bytes_; i += kStride) places.push_back(i);
    places.push_back(bytes_ - 1);
    return places;
  }
  // Writes values that differ between neighbouring places.
  void Write(int rank) {
    for (const int64_t place : Places()) data_[place] = Value(place, rank);
  }
  static uint8_t Value(int64_t place, int rank) {
    return static_cast<uint8_t>(place / kStride + place % 7 + 100 * rank);
  }

 private:
  const int64_t bytes_;
  uint8_t* const data_;
};

void ReduceLarge(Group* group) {
  constexpr int64_t kBytes = (int64_t{1} << 31) + 5;
  Region region(kBytes);
  region.Write(group->rank());
  const absl::Status status = group->AllReduce(
      ReduceOp::kSum, DType::kUint8, region.data(), region.data(), kBytes);
  ASSERT_TRUE(status.ok()) << status;
  for (const int64_t place : region.Places()) {
    EXPECT_EQ(
        region.data()[place],
        static_cast<uint8_t>(Region::Value(place, 0) + Region::Value(place, 1)))
        << place;
  }
}

void BroadcastLarge(Group* group) {
  constexpr int64_t kBytes = (int64_t{1} << 32) + 3;
  Region region(kBytes);
  if (group->rank() == 0) {
    region.KeepSmall();
    region.Write(0);
  }
  const absl::Status status =
      group->Broadcast(DType::kUint8, region.data(), kBytes, 0);
  ASSERT_TRUE(status.ok()) << status;
  for (const int64_t place : region.Places()) {
    EXPECT_EQ(region.data()[place], Region::Value(place, 0)) << place;
  }
}

class Large : public testing::Test {
 protected:
  void SetUp() override {
    if (AvailableKiB() < kNeededKiB) {
      GTEST_SKIP() << "needs 6 GiB of free memory";
    }
  }
};

HostGroupOptions OfHost() {
  HostGroupOptions options;
  options.ranks = 2;
  return options;
}

TEST_F(Large, ReductionInSharedMemory) { RunRanks(OfHost(), ReduceLarge); }

TEST_F(Large, BroadcastInSharedMemory) { RunRanks(OfHost(), BroadcastLarge); }

TEST_F(Large, ReductionByMessages) {
  RunRanks(OpenTeam(2, Over({Fabric::kTcp})), {}, ReduceLarge);
}

TEST_F(Large, BroadcastByMessages) {
  RunRanks(OpenTeam(2, Over({Fabric::kTcp})), {}, BroadcastLarge);
}

}  // namespace
}  // namespace penstock::collectives
