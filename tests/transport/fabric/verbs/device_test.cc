// Tests the addresses at which a fabric listens, and the errors if there is no
// address.

#include "transport/fabric/verbs/device.h"

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class DeviceTest : public testing::Test {
 protected:
  DeviceTest() {
    DeviceOptions device;
    device.name = "mlx5_0";
    device.addresses = {"10.0.0.1", "fd00::1"};
    device.gid_types = {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2};
    verbs_.AddDevice(device);
    device.name = "mlx5_1";
    device.addresses = {"10.0.0.2"};
    verbs_.AddDevice(device);
    options_.addresses = {"10.0.0.1", "fd00::1", "10.0.0.2", "10.0.0.9"};
  }
  ~DeviceTest() override {
    channel_.reset();
    EXPECT_EQ(verbs_.leaks(), std::vector<std::string>());
  }

  absl::StatusOr<std::vector<BoundId>> Bind() {
    return BindToDevices(&verbs_, channel_.get(), options_);
  }
  // Returns the bound addresses, or the text of the error.
  std::vector<std::string> Found() {
    absl::StatusOr<std::vector<BoundId>> bound = Bind();
    if (!bound.ok()) return {std::string(bound.status().message())};
    std::vector<std::string> texts;
    for (const BoundId& each : *bound) texts.push_back(each.address.Text());
    return texts;
  }
  std::string NotFound() {
    const absl::Status status = Bind().status();
    EXPECT_EQ(status.code(), absl::StatusCode::kNotFound) << status;
    return std::string(status.message());
  }

  FakeVerbs verbs_;
  std::shared_ptr<CmChannel> channel_ =
      CmChannel::Create(&verbs_, progress::EventLoop::Get().value()).value();
  Options options_;
};

using Texts = std::vector<std::string>;

TEST_F(DeviceTest, AddressesOfNoDeviceAreLeftOut) {
  EXPECT_EQ(Found(), (Texts{"10.0.0.1", "fd00::1", "10.0.0.2"}));
}

TEST_F(DeviceTest, EachHasTheRequestedPort) {
  options_.listen_port = 50051;
  const std::vector<BoundId> bound = Bind().value();
  ASSERT_EQ(bound.size(), 3u);
  for (const BoundId& each : bound) EXPECT_EQ(each.address.port(), 50051);
}

TEST_F(DeviceTest, RequestedPortMayBeTaken) {
  options_.listen_port = 50051;
  const auto first = Bind();
  const absl::Status status = Bind().status();
  EXPECT_EQ(status.code(), absl::StatusCode::kAlreadyExists);
  EXPECT_TRUE(absl::StrContains(status.message(), "50051 of 10.0.0.1"))
      << status;
}

// The kernel reports a listener at the wildcard address as EADDRNOTAVAIL.
TEST_F(DeviceTest, ErrorsOfARequestedPortAreToldFromAMissingDevice) {
  options_.listen_port = 80;
  const std::pair<int, absl::StatusCode> errors[] = {
      {EACCES, absl::StatusCode::kPermissionDenied},
      {EADDRNOTAVAIL, absl::StatusCode::kAlreadyExists},
      {ENOMEM, absl::StatusCode::kResourceExhausted},
  };
  for (const auto& [error, code] : errors) {
    verbs_.FailNext(Call::kBindAddr, error);
    const absl::Status status = Bind().status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "RDMA port 80 of 10.0.0.1"))
        << status;
  }
}

TEST_F(DeviceTest, EachHasAPort) {
  const std::vector<BoundId> bound = Bind().value();
  for (const BoundId& each : bound) {
    EXPECT_NE(each.address.port(), 0);
    EXPECT_NE(each.id->verbs, nullptr);
  }
  EXPECT_EQ(bound[0].address.port(),
            ntohs(verbs_.GetSrcPort(bound[0].id.get())));
}

TEST_F(DeviceTest, NamedDeviceIsTheOnlyOne) {
  options_.device = "mlx5_1";
  EXPECT_EQ(Found(), Texts{"10.0.0.2"});
}

TEST_F(DeviceTest, NamedAddressIsTheOnlyOne) {
  options_.addresses = {"fd00::1"};
  EXPECT_EQ(Found(), Texts{"fd00::1"});
}

TEST_F(DeviceTest, PortIsLookedAt) {
  options_.port = 1;
  EXPECT_EQ(Found().size(), 3u);
  options_.port = 2;
  EXPECT_TRUE(absl::StrContains(NotFound(), "port 2"));
}

// Selects among two entries of each address, one of each type.
TEST_F(DeviceTest, GidIndexSelectsTheAddress) {
  options_.gid_index = 1;
  EXPECT_EQ(Found(), (Texts{"10.0.0.1", "10.0.0.2"}));
  options_.gid_index = 3;
  EXPECT_EQ(Found(), Texts{"fd00::1"});
}

TEST_F(DeviceTest, UnfitDevicesAreNamedWithWhatTheyAre) {
  options_.device = "mlx5_7";
  options_.gid_index = 5;
  const std::string message = NotFound();
  for (const char* part : {"device mlx5_7", "GID index 5", "there is",
                           "mlx5_0/1", "mlx5_1/1", "RoCE v2", "mtu"}) {
    EXPECT_TRUE(absl::StrContains(message, part)) << part << ": " << message;
  }
}

TEST_F(DeviceTest, AddressOfNoDeviceIsNamed) {
  options_.addresses = {"10.0.0.9"};
  EXPECT_TRUE(absl::StrContains(NotFound(), "10.0.0.9")) << NotFound();
}

TEST_F(DeviceTest, MachineWithoutDevicesIsToldHowToLook) {
  FakeVerbs none;
  auto channel =
      CmChannel::Create(&none, progress::EventLoop::Get().value()).value();
  const absl::Status status =
      BindToDevices(&none, channel.get(), Options()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(absl::StrContains(status.message(), "rdma link")) << status;
}

TEST_F(DeviceTest, MalformedAddressIsAnError) {
  options_.addresses = {"10.0.0.1", "no address"};
  EXPECT_EQ(Bind().status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceTest, NoIdentifierIsAnError) {
  verbs_.FailNext(Call::kCreateId, EMFILE, /*after=*/1);
  EXPECT_FALSE(Bind().ok());
}

TEST_F(DeviceTest, DescriptionDoesWithoutWhatTheDeviceDoesNotTell) {
  const std::vector<BoundId> bound = Bind().value();
  EXPECT_EQ(DescribeDevice(&verbs_, *bound[0].id),
            "mlx5_0/1, GID 1, RoCE v2, mtu 1024");
  verbs_.FailNext(Call::kQueryGidTable, EOPNOTSUPP);
  EXPECT_EQ(DescribeDevice(&verbs_, *bound[0].id), "mlx5_0/1, RoCE, mtu 1024");
  verbs_.FailNext(Call::kQueryPort, EIO);
  EXPECT_EQ(DescribeDevice(&verbs_, *bound[0].id), "mlx5_0/1");
}

TEST_F(DeviceTest, TrafficClassIsRefusedAloudTheTimeoutIsNot) {
  const std::vector<BoundId> bound = Bind().value();
  options_.traffic_class = 104;
  EXPECT_TRUE(SetIdOptions(&verbs_, bound[0].id.get(), options_).ok());
  // Fails the first option, the acknowledgement timeout, which old kernels do
  // not know.
  verbs_.FailNext(Call::kSetOption, ENOSYS);
  EXPECT_TRUE(SetIdOptions(&verbs_, bound[0].id.get(), options_).ok());
  verbs_.FailNext(Call::kSetOption, EPERM, /*after=*/1);
  EXPECT_EQ(SetIdOptions(&verbs_, bound[0].id.get(), options_).code(),
            absl::StatusCode::kPermissionDenied);
}

TEST_F(DeviceTest, AnyRestrictionIsOne) {
  EXPECT_FALSE(IsRestricted(Options()));
  Options options;
  options.gid_index = 0;
  EXPECT_TRUE(IsRestricted(options));
  options = Options();
  options.port = 1;
  EXPECT_TRUE(IsRestricted(options));
  options = Options();
  options.device = "x";
  EXPECT_TRUE(IsRestricted(options));
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
