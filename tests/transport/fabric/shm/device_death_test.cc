// Tests two processes that hold device memory of each other. One of them dies.

#include <signal.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/death_rig.h"
#include "tests/transport/fabric/shm/shm_test_util.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/fabric/shm/fabric.h"
#include "transport/fabric/shm/region_key.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr size_t kMiB = 1 << 20;

void RunPeer(const std::string& offer, const std::string& token) {
  memory::FakeDeviceAccess devices;
  Options options;
  options.devices = &devices;
  DyingPeer peer(options, offer, token);
  peer.Serve(
      [&](const memory::Payload& loaded) {
        return loaded.pieces()[0].device == &devices &&
               devices.Get(loaded.pieces()[0].span()) == std::string(kMiB, 'p');
      },
      memory::Payload(devices.Put(std::string(kMiB, 'c'))));
  peer.Release();
  if (!WaitUntil([&] { return devices.open_now() == 0; })) _exit(8);
  _exit(0);
}

class ShmDeviceDeath : public DeathRig {
 protected:
  void SetUp() override {
    Options options;
    options.devices = &devices_;
    Start(options, &RunPeer);
    ASSERT_NE(endpoint_, nullptr);
    EXPECT_TRUE(endpoint_->TakesDeviceMemory());
    Exchange();
  }
  // Makes each side hold 1 MiB of the other's memory.
  void Exchange() {
    memory::Bytes piece = devices_.Put(std::string(kMiB, 'p'));
    lent_ = piece.owner;
    ASSERT_NO_FATAL_FAILURE(
        DeathRig::Exchange(memory::Payload(std::move(piece))));
    ASSERT_TRUE(IsDeviceId(SegmentOfKey(lent_part_.key)));
    ASSERT_TRUE(IsDeviceId(SegmentOfKey(held_part_.key)));
    ASSERT_EQ(held_.pieces()[0].device, &devices_);
    EXPECT_EQ(devices_.Get(held_.pieces()[0].span()), std::string(kMiB, 'c'));
    EXPECT_EQ(devices_.copies(), 0);
  }

  memory::FakeDeviceAccess devices_;
  std::weak_ptr<const void> lent_;
};

TEST_F(ShmDeviceDeath, OfThePeerEndsItsLoansAndClosesWhatItLent) {
  EXPECT_FALSE(lent_.expired());
  Kill();
  ASSERT_TRUE(PollUntilBroken());
  EXPECT_TRUE(WaitUntil([this] { return lent_.expired(); }));
  EXPECT_FALSE(endpoint_->TakesDeviceMemory());
  // Expects that held memory stays valid.
  EXPECT_EQ(devices_.Get(held_.pieces()[0].span()), std::string(kMiB, 'c'));
  endpoint_.reset();
  EXPECT_EQ(devices_.open_now(), 1);
  held_ = memory::Payload();
  EXPECT_TRUE(WaitUntil([this] { return devices_.open_now() == 0; }));
}

TEST_F(ShmDeviceDeath, AfterOurEndIsGoneLoansComeBackToo) {
  kill(peer(), SIGSTOP);
  held_ = memory::Payload();
  endpoint_.reset();
  EXPECT_TRUE(WaitUntil([this] { return devices_.open_now() == 0; }));
  EXPECT_FALSE(lent_.expired());
  Kill();
  EXPECT_TRUE(WaitUntil([this] { return lent_.expired(); }));
}

TEST_F(ShmDeviceDeath, PeerClosesAllWhenOurEndIsGone) {
  endpoint_.reset();
  EXPECT_EQ(WaitForPeer(), 0);
  EXPECT_TRUE(WaitUntil([this] { return lent_.expired(); }));
}

TEST_F(ShmDeviceDeath, ForkedCopyTouchesNothing) {
  // Expects that the forked copy calls no driver.
  DropInForkedCopy([this] { return devices_.open_now() == 1; });
  EXPECT_FALSE(lent_.expired());
  Exchange();
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
