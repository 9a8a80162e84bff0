// Tests which connections lend device memory.

#include "transport/paths/side_paths.h"

#include <chrono>
#include <future>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "tests/transport/memory/fake_device_access.h"
#include "transport/base/token.h"
#include "transport/fabric/fabric.h"
#include "transport/settings/settings.h"

namespace penstock {
namespace paths {
namespace {

using Path = absl::StatusOr<std::shared_ptr<fabric::Endpoint>>;

// An attempt at a path. The test waits for its end.
class Attempt {
 public:
  SidePaths::Done callback() {
    return [ended = ended_](const std::string&, Path path) {
      ended->set_value(std::move(path));
    };
  }
  Path Take() {
    std::future<Path> ended = ended_->get_future();
    if (ended.wait_for(std::chrono::seconds(20)) != std::future_status::ready) {
      return absl::InternalError("the callback was not called");
    }
    return ended.get();
  }

 private:
  std::shared_ptr<std::promise<Path>> ended_ =
      std::make_shared<std::promise<Path>>();
};

Settings OnlyShm(ShmSharing sharing) {
  Settings settings;
  settings.fabrics = {Fabric::kShm};
  settings.shm_sharing = sharing;
  return settings;
}

// Returns devices that live as long as the process, like real devices.
memory::DeviceAccess* Devices() {
  static auto* const devices = new memory::FakeDeviceAccess;
  return devices;
}

// Returns true if both ends of a connection accept device memory. Fails the
// test if only one end does.
bool Take(SidePaths server, SidePaths client) {
  const std::vector<wire::FabricOffer> offers = server.Offers();
  EXPECT_EQ(offers.size(), 1u);
  const std::string token = base::NewToken().value();
  Attempt listened, connected;
  server.Listen(offers, token, listened.callback());
  client.Connect("shm", offers[0].data, token, connected.callback());
  const Path ends[] = {listened.Take(), connected.Take()};
  for (const Path& end : ends) EXPECT_TRUE(end.ok()) << end.status();
  if (!ends[0].ok() || !ends[1].ok()) return false;
  EXPECT_EQ((*ends[0])->TakesDeviceMemory(), (*ends[1])->TakesDeviceMemory());
  return (*ends[0])->TakesDeviceMemory();
}

SidePaths With(memory::DeviceAccess* devices,
               ShmSharing sharing = ShmSharing::kSameUid,
               bool is_private = false) {
  return SidePaths(OnlyShm(sharing), is_private, devices);
}

TEST(SidePaths, LendDevicesMemoryIfBothSidesHaveSome) {
  EXPECT_TRUE(Take(With(Devices()), With(Devices())));
  EXPECT_FALSE(Take(With(Devices()), With(nullptr)));
  EXPECT_FALSE(Take(With(nullptr), With(Devices())));
  EXPECT_FALSE(Take(With(nullptr), With(nullptr)));
}

TEST(SidePaths, LendItUnderTlsAsAllSharedMemory) {
  EXPECT_TRUE(Take(With(Devices(), ShmSharing::kSameUid, /*is_private=*/true),
                   With(Devices(), ShmSharing::kSameUid, /*is_private=*/true)));
}

TEST(SidePaths, LendNoneIfOneSideCopies) {
  EXPECT_FALSE(Take(With(Devices(), ShmSharing::kCopy), With(Devices())));
  EXPECT_FALSE(Take(With(Devices()), With(Devices(), ShmSharing::kCopy)));
}

}  // namespace
}  // namespace paths
}  // namespace penstock
