// Tests that memory is not freed before every process with which it is shared
// has closed it.

#include "transport/device/owned_blocks.h"

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/device/fake_process.h"

namespace penstock {
namespace device {
namespace {

constexpr size_t kBytes = 100000;

class OwnedBlocksTest : public testing::Test {
 protected:
  DeviceBlock Allocate() {
    const auto open = sender_.devices()->At(0);
    EXPECT_TRUE(open.ok()) << open.status();
    auto block = AllocateOnDevice((*open)->device.get(), kBytes);
    EXPECT_TRUE(block.ok()) << block.status();
    return *std::move(block);
  }
  // Returns the block's address, and the share of its users.
  abi::Address Own(std::shared_ptr<const void>* use) {
    DeviceBlock block = Allocate();
    const abi::Address address = block.get();
    *use = sender_.access()->Own(std::move(block));
    return address;
  }
  memory::SharedAllocation Share(abi::Address address) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): it is one
    const auto* const data = reinterpret_cast<const uint8_t*>(address);
    const auto shared = sender_.access()->Share({data + 1000, 500});
    EXPECT_TRUE(shared.ok()) << shared.status();
    return shared.ok() ? *shared : memory::SharedAllocation();
  }
  int Freed() { return sender_.driver()->CallsOf("MemFree"); }

  // Fails the test if memory is freed that the other process has open.
  FakeProcess sender_;
  FakeProcess receiver_;
};

TEST_F(OwnedBlocksTest, WhatIsNotSharedIsFreedAtOnce) {
  std::shared_ptr<const void> use;
  (void)Own(&use);
  use.reset();
  EXPECT_EQ(Freed(), 1);
}

TEST_F(OwnedBlocksTest, WhatIsSharedIsFreedByTheLastWhoKeepsIt) {
  std::shared_ptr<const void> use;
  memory::SharedAllocation shared = Share(Own(&use));
  memory::SharedAllocation other = shared;
  auto open = receiver_.access()->Open(shared.handle, shared.size);
  ASSERT_TRUE(open.ok()) << open.status();
  EXPECT_FALSE(shared.use.expired());
  use.reset();
  EXPECT_TRUE(shared.use.expired());
  EXPECT_EQ(Freed(), 0);
  open->owner.reset();
  shared.memory.reset();
  EXPECT_EQ(Freed(), 0);
  other.memory.reset();
  EXPECT_EQ(Freed(), 1);
}

TEST_F(OwnedBlocksTest, SharingKeepsNobodyFromUsingItLonger) {
  std::shared_ptr<const void> use;
  const abi::Address address = Own(&use);
  Share(address).memory.reset();
  EXPECT_EQ(Freed(), 0);
  EXPECT_NE(Share(address).memory, nullptr) << "again";
}

TEST_F(OwnedBlocksTest, MemoryOfTheProgramsOwnIsItsOwnToKeep) {
  const DeviceBlock block = Allocate();
  const memory::SharedAllocation shared = Share(block.get());
  EXPECT_EQ(shared.memory, nullptr);
  EXPECT_TRUE(shared.use.expired());
}

TEST_F(OwnedBlocksTest, TheNextOneAtAnAddressIsAnother) {
  for (int i = 0; i < 100; ++i) {
    std::shared_ptr<const void> use;
    const abi::Address address = Own(&use);
    const memory::SharedAllocation shared = Share(address);
    EXPECT_NE(shared.memory, nullptr);
    EXPECT_FALSE(shared.use.expired());
  }
  EXPECT_EQ(Freed(), 100);
}

}  // namespace
}  // namespace device
}  // namespace penstock
