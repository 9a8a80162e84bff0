// Tests that a survey reports the state that a connection will find.

#include "transport/fabric/verbs/survey.h"

#include <cerrno>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class SurveyTest : public testing::Test {
 protected:
  SurveyTest() {
    DeviceOptions device;
    device.name = "mlx5_0";
    device.addresses = {"10.0.0.1", "fd00::1"};
    device.gid_types = {IBV_GID_TYPE_ROCE_V1, IBV_GID_TYPE_ROCE_V2};
    verbs_.AddDevice(device);
    device.name = "mlx5_1";
    device.addresses = {"10.0.0.2"};
    verbs_.AddDevice(device);
    options_.addresses = {"10.0.0.1", "10.0.0.2", "10.0.0.9"};
  }
  ~SurveyTest() override {
    EXPECT_EQ(verbs_.leaks(), std::vector<std::string>());
  }

  FakeVerbs verbs_;
  Options options_;
};

TEST_F(SurveyTest, EveryAddressOnADeviceIsThereWithItsGid) {
  const auto found = SurveyAddresses(&verbs_, options_);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 2U);
  EXPECT_EQ((*found)[0].address, "10.0.0.1");
  EXPECT_EQ((*found)[0].device, "mlx5_0");
  EXPECT_EQ((*found)[0].port, 1);
  EXPECT_EQ((*found)[0].description.find("mlx5_0/1, GID 1, RoCE v2, mtu "), 0U)
      << (*found)[0].description;
  EXPECT_TRUE((*found)[0].windows.ok()) << (*found)[0].windows;
  EXPECT_EQ((*found)[1].address, "10.0.0.2");
  EXPECT_EQ((*found)[1].device, "mlx5_1");
}

TEST_F(SurveyTest, RestrictionsAreRespected) {
  options_.device = "mlx5_1";
  const auto found = SurveyAddresses(&verbs_, options_);
  ASSERT_TRUE(found.ok()) << found.status();
  ASSERT_EQ(found->size(), 1U);
  EXPECT_EQ((*found)[0].device, "mlx5_1");
}

TEST_F(SurveyTest, WhereNoAddressIsOnADeviceItSaysSo) {
  options_.addresses = {"10.0.0.9"};
  const auto found = SurveyAddresses(&verbs_, options_);
  EXPECT_EQ(found.status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
