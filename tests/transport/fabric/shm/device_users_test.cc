// Tests memory of devices with a peer of another user.

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/shm/child.h"
#include "tests/transport/fabric/shm/device_pair.h"
#include "tests/transport/fabric/shm/shm_test_util.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

Options WithDevices(memory::DeviceAccess* devices) {
  Options options;
  options.devices = devices;
  return options;
}

TEST(ShmDeviceUsers, NothingIsLentToOtherUsers) {
  if (!IsRoot()) GTEST_SKIP() << "needs root to become another user";
  memory::FakeDeviceAccess devices;
  ShmFabric fabric(WithDevices(&devices));
  const std::string offer = fabric.Offer().value();
  const std::string token = NewTestToken();
  Outcome listened;
  auto listen = fabric.Listen(token, listened.callback());
  ForkedChild child([&] {
    BecomeUser(kOtherUid);
    memory::FakeDeviceAccess own;
    ShmFabric connecting(WithDevices(&own));
    Outcome connected;
    auto connect = connecting.Connect(offer, token, connected.callback());
    auto endpoint = connected.Take();
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    EXPECT_FALSE((*endpoint)->TakesDeviceMemory());
    Recorder events;
    (*endpoint)->Start(&events);
    // Expects that the memory stays alive while the other side lends it.
    EXPECT_TRUE(WaitUntil([&] {
      (*endpoint)->Poll();
      return !events.broken.empty();
    }));
  });
  auto endpoint = listened.Take();
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_FALSE((*endpoint)->TakesDeviceMemory());
  const memory::Payload payload(devices.Put(Content(kMiB, 1)));
  const auto exposure = (*endpoint)->Expose(payload, 1);
  ASSERT_TRUE(exposure.ok()) << exposure.status();
  EXPECT_FALSE(IsDeviceId(SegmentOfKey(exposure->region[0].key)));
  endpoint->reset();
  EXPECT_TRUE(child.Join());
}

}  // namespace
}  // namespace shm
}  // namespace fabric
}  // namespace penstock
