// Tests a device that reaches one GPU, but not another GPU behind another
// switch or IOMMU.

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/gpu_test.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class SeveralGpusTest : public GpuTest {
 protected:
  // Opens the ends with a peer-memory module. The module finds the memory of
  // `lost_` at a wrong place, or not at all.
  void OpenWithOneLost(bool leads_astray) {
    DeviceOptions device;
    device.has_dmabuf = false;
    device.peer_memory = [this, leads_astray](const void* address,
                                              size_t size) -> uint8_t* {
      const absl::Span<const uint8_t> range(
          static_cast<const uint8_t*>(address), size);
      const absl::StatusOr<int> ordinal = gpu_.OrdinalOf(range);
      if (!ordinal.ok()) return nullptr;
      if (*ordinal != lost_) return gpu_.Backing(range);
      if (!leads_astray) return nullptr;
      return size <= elsewhere_.size() ? elsewhere_.data() : nullptr;
    };
    Open(device);
  }
  bool Lands(int ordinal) {
    const memory::Bytes into = gpu_.Put(Text(kGpuTestBytes), ordinal);
    const auto prepared = Prepare(into);
    if (prepared == nullptr) return false;
    ExpectLands(into, 1);
    return true;
  }

  int lost_ = 1;
  std::vector<uint8_t> elsewhere_ = std::vector<uint8_t>(2 * kGpuTestBytes);
};

TEST_F(SeveralGpusTest, EachIsTried) {
  OpenWithOneLost(/*leads_astray=*/true);
  ExpectInPlace(1, 0);
  ExpectStaged(2, 1);
  EXPECT_TRUE(Lands(0));
  EXPECT_FALSE(Lands(1));
  ExpectInPlace(3, 2);
  EXPECT_TRUE(Lands(2));
}

TEST_F(SeveralGpusTest, OneThatIsRefusedLeavesTheOthers) {
  OpenWithOneLost(/*leads_astray=*/false);
  ExpectInPlace(0, 0);
  for (int i = 0; i < 4; ++i) {
    ExpectStaged(i, 1);
    EXPECT_FALSE(Lands(1));
  }
  EXPECT_TRUE(server()->TakesDeviceMemory());
  ExpectInPlace(4, 0);
  EXPECT_TRUE(Lands(0));
  ExpectInPlace(5, 2);
  EXPECT_TRUE(ServerSays(
      "windows, GPU 0: GPUDirect by peermem to send; GPU 1: memory of GPUs "
      "staged, not to send: peermem: "))
      << server()->Describe();
  EXPECT_TRUE(ServerSays("; GPU 2: GPUDirect by peermem to send, "))
      << server()->Describe();
}

TEST_F(SeveralGpusTest, WhatHoldsForAllIsSaidOnce) {
  OpenWithOneLost(/*leads_astray=*/false);
  ExpectInPlace(1, 0);
  ExpectInPlace(2, 2);
  EXPECT_TRUE(
      ServerSays("windows, GPUDirect by peermem to send, registrations"))
      << server()->Describe();
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
