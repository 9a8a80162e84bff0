// Tests that the trial trusts exactly the devices that keep the promises of
// windows.

#include "transport/fabric/verbs/window_trial.h"

#include <cerrno>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"
#include "transport/fabric/verbs/devices.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using Change = void (*)(DeviceOptions*);

DeviceOptions Good() {
  DeviceOptions options;
  options.name = "mlx5_0";
  options.addresses = {"fe80::1", "10.0.0.1"};
  return options;
}

absl::Status Try(FakeVerbs* verbs, const DeviceOptions& options,
                 absl::Duration limit = kWindowTrialLimit) {
  ibv_context* device = verbs->context(options.name);
  if (device == nullptr) device = verbs->AddDevice(options);
  const absl::StatusOr<WindowTrust> trust = TryWindows(verbs, device, 1, limit);
  EXPECT_EQ(verbs->leaks(), std::vector<std::string>());
  EXPECT_EQ(trust.value_or(WindowTrust::kAll), WindowTrust::kAll);
  return trust.status();
}

absl::StatusOr<WindowTrust> TryForgiving(const DeviceOptions& options) {
  FakeVerbs verbs;
  return TryWindows(&verbs, verbs.AddDevice(options), 1, kWindowTrialLimit,
                    RangeRule::kForgiven);
}

TEST(WindowTrialTest, DeviceThatKeepsToThemIsTrusted) {
  FakeVerbs verbs;
  EXPECT_TRUE(Try(&verbs, Good()).ok());
}

TEST(WindowTrialTest, SoIsOneOfInfiniBand) {
  FakeVerbs verbs;
  DeviceOptions options = Good();
  options.link_layer = IBV_LINK_LAYER_INFINIBAND;
  options.gid_types = {IBV_GID_TYPE_IB};
  // Adds a device. The trial must not take the device's address for its own.
  DeviceOptions other = options;
  other.name = "mlx5_1";
  other.addresses = {"10.0.0.2"};
  verbs.AddDevice(other);
  const absl::Status status = Try(&verbs, options);
  EXPECT_TRUE(status.ok()) << status;
}

struct Fault {
  const char* name;
  Change change;
  absl::StatusCode code;
  const char* text;
};

class UntrustedDevice : public testing::TestWithParam<Fault> {};

TEST_P(UntrustedDevice, IsFoundOut) {
  FakeVerbs verbs;
  DeviceOptions options = Good();
  GetParam().change(&options);
  const absl::Status status = Try(&verbs, options);
  EXPECT_EQ(status.code(), GetParam().code) << status;
  EXPECT_EQ(status.message(), GetParam().text);
}

const Fault kFaults[] = {
    {"WithoutWindows", [](DeviceOptions* o) { o->has_windows = false; },
     absl::StatusCode::kUnimplemented, "no memory windows of type 2"},
    // The fault of Soft-RoCE.
    {"Range", [](DeviceOptions* o) { o->enforce_window_range = false; },
     absl::StatusCode::kPermissionDenied, "reads reach beyond a window"},
    {"Invalidation", [](DeviceOptions* o) { o->enforce_invalidation = false; },
     absl::StatusCode::kPermissionDenied,
     "windows can be read after their invalidation"},
    {"QueuePair",
     [](DeviceOptions* o) { o->enforce_window_queue_pair = false; },
     absl::StatusCode::kPermissionDenied,
     "windows can be read through other queue pairs"},
    {"Region", [](DeviceOptions* o) { o->enforce_region_access = false; },
     absl::StatusCode::kPermissionDenied,
     "regions can be read without a window"},
    {"Bytes", [](DeviceOptions* o) { o->reads_bytes = false; },
     absl::StatusCode::kDataLoss, "windows give the wrong bytes"},
};

INSTANTIATE_TEST_SUITE_P(Each, UntrustedDevice, testing::ValuesIn(kFaults),
                         [](const testing::TestParamInfo<Fault>& info) {
                           return std::string(info.param.name);
                         });

TEST(WindowTrialTest, OnlyTheRangeIsForgivenToTests) {
  EXPECT_EQ(TryForgiving(Good()).value(), WindowTrust::kAll);
  DeviceOptions soft_roce = Good();
  soft_roce.enforce_window_range = false;
  EXPECT_EQ(TryForgiving(soft_roce).value(), WindowTrust::kAllButRange);
  for (const Fault& fault : kFaults) {
    DeviceOptions worse = soft_roce;
    fault.change(&worse);
    if (std::string(fault.name) == "Range") continue;
    const absl::StatusOr<WindowTrust> trust = TryForgiving(worse);
    EXPECT_EQ(trust.status().code(), fault.code) << fault.name;
    EXPECT_EQ(trust.status().message(), fault.text);
  }
}

TEST(WindowTrialTest, ReadBeyondTheRangeThatFailsSomehowIsNotForgiven) {
  FakeVerbs verbs;
  ibv_context* const device = verbs.AddDevice(Good());
  verbs.CompleteNext(IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
  verbs.CompleteNext(IBV_WR_RDMA_READ, IBV_WC_RETRY_EXC_ERR);
  EXPECT_TRUE(absl::IsUnavailable(
      TryWindows(&verbs, device, 1, kWindowTrialLimit, RangeRule::kForgiven)
          .status()));
}

// Fails the first read, which lies in the window and must be allowed.
TEST(WindowTrialTest, ReadThatFailsInsideTheWindowIsNoTrust) {
  FakeVerbs verbs;
  verbs.CompleteNext(IBV_WR_RDMA_READ, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(Try(&verbs, Good()).message(), "windows cannot be read");
}

// Fails the second read, which reaches beyond the range, with errors other than
// a refusal. The trial must not take such an error for a refusal.
TEST(WindowTrialTest, ReadThatFailsForAnotherReasonIsNoTrust) {
  for (const ibv_wc_status status :
       {IBV_WC_RETRY_EXC_ERR, IBV_WC_LOC_PROT_ERR, IBV_WC_WR_FLUSH_ERR}) {
    FakeVerbs verbs;
    verbs.CompleteNext(IBV_WR_RDMA_READ, IBV_WC_SUCCESS);
    verbs.CompleteNext(IBV_WR_RDMA_READ, status);
    EXPECT_EQ(Try(&verbs, Good()).message(),
              absl::StrCat("a forbidden read ended with status ", int{status}));
  }
}

TEST(WindowTrialTest, FailedBindingAndInvalidationAreNoTrust) {
  FakeVerbs verbs;
  verbs.CompleteNext(IBV_WR_BIND_MW, IBV_WC_MW_BIND_ERR);
  EXPECT_EQ(Try(&verbs, Good()).message(), "windows cannot be bound");
  verbs.CompleteNext(IBV_WR_LOCAL_INV, IBV_WC_LOC_QP_OP_ERR);
  EXPECT_EQ(Try(&verbs, Good()).message(), "windows cannot be invalidated");
}

TEST(WindowTrialTest, DeviceThatCompletesNothingIsGivenUp) {
  FakeVerbs verbs;
  verbs.AddDevice(Good());
  verbs.CutLink("mlx5_0", "mlx5_0");
  const absl::Status status = Try(&verbs, Good(), absl::Milliseconds(20));
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
}

TEST(WindowTrialTest, PortThatIsDownOrHasNoAddressSaysSo) {
  FakeVerbs verbs;
  verbs.AddDevice(Good());
  verbs.PortDown("mlx5_0");
  EXPECT_EQ(Try(&verbs, Good()).message(), "the port is down");
  DeviceOptions bare = Good();
  bare.name = "mlx5_1";
  bare.addresses.clear();
  EXPECT_EQ(Try(&verbs, bare).message(), "the port has no address");
}

class FailingCall : public testing::TestWithParam<Call> {};

TEST_P(FailingCall, IsNoTrustAndLeavesNothingBehind) {
  FakeVerbs verbs;
  for (int after = 0;; ++after) {
    SCOPED_TRACE(absl::StrCat("failure after ", after));
    ASSERT_LT(after, 100);
    verbs.FailNext(GetParam(), ENOMEM, after);
    const absl::Status status = Try(&verbs, Good());
    if (verbs.failures_to_come() > 0) {
      EXPECT_GT(after, 0) << "never called";
      EXPECT_TRUE(status.ok()) << status;
      return;
    }
    EXPECT_FALSE(status.ok());
  }
}

INSTANTIATE_TEST_SUITE_P(Each, FailingCall,
                         testing::Values(Call::kQueryDevice, Call::kQueryPort,
                                         Call::kQueryGidTable, Call::kAllocPd,
                                         Call::kCreateCq, Call::kRegMr,
                                         Call::kIbvCreateQp, Call::kModifyQp,
                                         Call::kAllocMw, Call::kPostSend,
                                         Call::kPollCq));

TEST(DevicesTest, ProofIsGivenOnce) {
  for (const bool good : {true, false}) {
    FakeVerbs verbs;
    DeviceOptions options = Good();
    options.enforce_window_range = good;
    ibv_context* const device = verbs.AddDevice(options);
    const auto devices = Devices::For(&verbs);
    EXPECT_EQ(devices->WindowsOf(device, 1).ok(), good);
    verbs.FailNext(Call::kAllocPd, ENOMEM);
    EXPECT_EQ(devices->WindowsOf(device, 1).ok(), good);
    EXPECT_EQ(verbs.failures_to_come(), 1u) << "tried again";
    EXPECT_EQ(Devices::For(&verbs), devices);
  }
}

TEST(DevicesTest, WhatProvesNothingIsTriedAgainAFewTimes) {
  FakeVerbs verbs;
  ibv_context* const device = verbs.AddDevice(Good());
  {
    const auto devices = Devices::For(&verbs);
    verbs.FailNext(Call::kAllocPd, ENOMEM);
    EXPECT_FALSE(devices->WindowsOf(device, 1).ok());
    EXPECT_TRUE(devices->WindowsOf(device, 1).ok());
  }
  const auto devices = Devices::For(&verbs);
  for (int i = 0; i < 3; ++i) verbs.FailNext(Call::kAllocPd, ENOMEM);
  for (int i = 0; i < 5; ++i) {
    EXPECT_TRUE(
        absl::IsResourceExhausted(devices->WindowsOf(device, 1).status()));
  }
}

// Tests that a change of the rule also drops the results of earlier trials.
TEST(DevicesTest, WhatATestForgivesIsForgottenAfterIt) {
  FakeVerbs verbs;
  DeviceOptions options = Good();
  options.enforce_window_range = false;
  ibv_context* const device = verbs.AddDevice(options);
  const auto devices = Devices::For(&verbs);
  EXPECT_FALSE(devices->WindowsOf(device, 1).ok()) << "by default";
  Devices::SetRangeRuleForTest(RangeRule::kForgiven);
  EXPECT_EQ(devices->WindowsOf(device, 1).value_or(WindowTrust::kAll),
            WindowTrust::kAllButRange);
  Devices::SetRangeRuleForTest(RangeRule::kEnforced);
  EXPECT_FALSE(devices->WindowsOf(device, 1).ok());
}

TEST(DevicesTest, EachDeviceIsTriedByItself) {
  FakeVerbs verbs;
  DeviceOptions bad = Good();
  bad.name = "rxe0";
  bad.enforce_window_range = false;
  ibv_context* const untrusted = verbs.AddDevice(bad);
  ibv_context* const trusted = verbs.AddDevice(Good());
  const auto devices = Devices::For(&verbs);
  EXPECT_FALSE(devices->WindowsOf(untrusted, 1).ok());
  EXPECT_TRUE(devices->WindowsOf(trusted, 1).ok());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
