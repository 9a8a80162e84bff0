#include "transport/device/slots.h"

#include <random>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace device {
namespace {

TEST(SlotsTest, SmallCopiesShareASlot) {
  char host[300];
  const std::vector<HostCopy> copies = {
      {1000, host, 100}, {5000, host + 100, 0}, {9000, host + 100, 10}};
  const std::vector<SlotLoad> loads = DivideAmongSlots(copies, 256);
  ASSERT_EQ(loads.size(), 1);
  ASSERT_EQ(loads[0].size(), 2);
  EXPECT_EQ(loads[0][1].device, 9000);
  EXPECT_EQ(loads[0][1].bytes, 10);
}

TEST(SlotsTest, EveryByteGoesThroughOnceAndInOrder) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937 random(seed);
  for (int i = 0; i < 500; ++i) {
    const size_t slot_bytes = kSlotAlignment * (1 + random() % 20);
    std::vector<HostCopy> copies(random() % 10);
    std::string all(20000, 0);
    size_t total = 0;
    // The wanted result: the destination of each source address.
    std::vector<std::pair<abi::Address, char*>> wanted;
    for (HostCopy& copy : copies) {
      copy.bytes = random() % 2000;
      copy.device = 1000000 + random() % 1000000;
      copy.host = &all[total];
      total += copy.bytes;
      for (size_t b = 0; b < copy.bytes; ++b) {
        wanted.emplace_back(copy.device + b, copy.host + b);
      }
    }
    std::vector<std::pair<abi::Address, char*>> got;
    for (const SlotLoad& load : DivideAmongSlots(copies, slot_bytes)) {
      size_t used = 0;
      for (const HostCopy& part : load) {
        EXPECT_GT(part.bytes, 0);
        EXPECT_LE(used + part.bytes, slot_bytes);
        used += SlotBytes(part.bytes);
        for (size_t b = 0; b < part.bytes; ++b) {
          got.emplace_back(part.device + b, part.host + b);
        }
      }
    }
    ASSERT_EQ(got, wanted);
  }
}

TEST(SlotsTest, FirstLoadsGrowAndLastOnesShrink) {
  constexpr size_t kKiB = 1024;
  char host;
  const std::vector<HostCopy> copies = {{0, &host, 16 * 1024 * kKiB}};
  std::vector<size_t> kibs;
  for (const SlotLoad& load : DivideAmongSlots(copies, 2048 * kKiB)) {
    kibs.push_back(load[0].bytes / kKiB);
  }
  EXPECT_EQ(kibs, (std::vector<size_t>{256, 512, 1024, 2048, 2048, 2048, 2048,
                                       2048, 2048, 1152, 576, 288, 288}));
}

}  // namespace
}  // namespace device
}  // namespace penstock
