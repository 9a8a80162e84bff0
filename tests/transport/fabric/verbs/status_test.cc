// Tests that each answer of a device has a status with a useful text.

#include "transport/fabric/verbs/status.h"

#include <cerrno>
#include <string>

#include "absl/strings/match.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

TEST(StatusTest, SuccessIsOk) {
  EXPECT_TRUE(CompletionStatus(IBV_WC_SUCCESS).ok());
}

TEST(StatusTest, EveryOtherCompletionIsAnErrorWithAMessage) {
  // Tries all numbers, and one more, as a newer library may return.
  for (int i = IBV_WC_SUCCESS + 1; i <= IBV_WC_TM_RNDV_INCOMPLETE + 1; ++i) {
    const absl::Status status = CompletionStatus(static_cast<ibv_wc_status>(i));
    EXPECT_FALSE(status.ok()) << i;
    EXPECT_FALSE(status.message().empty()) << i;
  }
}

TEST(StatusTest, WhatThePeerOrTheNetworkCausesIsUnavailable) {
  for (const ibv_wc_status status :
       {IBV_WC_RETRY_EXC_ERR, IBV_WC_RNR_RETRY_EXC_ERR, IBV_WC_RESP_TIMEOUT_ERR,
        IBV_WC_WR_FLUSH_ERR, IBV_WC_REM_ACCESS_ERR, IBV_WC_REM_INV_REQ_ERR,
        IBV_WC_REM_OP_ERR}) {
    EXPECT_EQ(CompletionStatus(status).code(), absl::StatusCode::kUnavailable)
        << status;
  }
}

TEST(StatusTest, WhatWeCauseIsInternalAndTellsItsNumber) {
  for (const ibv_wc_status status :
       {IBV_WC_LOC_LEN_ERR, IBV_WC_LOC_QP_OP_ERR, IBV_WC_LOC_PROT_ERR,
        IBV_WC_MW_BIND_ERR, IBV_WC_LOC_ACCESS_ERR, IBV_WC_FATAL_ERR,
        IBV_WC_GENERAL_ERR}) {
    const absl::Status error = CompletionStatus(status);
    EXPECT_EQ(error.code(), absl::StatusCode::kInternal) << status;
    EXPECT_TRUE(absl::StrContains(error.message(), std::to_string(status)));
  }
}

TEST(StatusTest, EveryEventHasAMessage) {
  for (int i = RDMA_CM_EVENT_ADDR_RESOLVED; i <= RDMA_CM_EVENT_TIMEWAIT_EXIT;
       ++i) {
    const absl::Status status =
        CmStatus(static_cast<rdma_cm_event_type>(i), -ETIMEDOUT);
    EXPECT_FALSE(status.ok()) << i;
    EXPECT_FALSE(status.message().empty()) << i;
  }
}

TEST(StatusTest, RejectsTellWhoRefused) {
  const absl::Status by_peer = CmStatus(RDMA_CM_EVENT_REJECTED, 28);
  EXPECT_EQ(by_peer.code(), absl::StatusCode::kPermissionDenied);
  const absl::Status nobody = CmStatus(RDMA_CM_EVENT_REJECTED, 8);
  EXPECT_EQ(nobody.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(nobody.message(), "nobody listens"));
}

TEST(StatusTest, FailedCallNamesOperationDeviceAndCause) {
  FakeVerbs verbs;
  ibv_context* const device = verbs.AddDevice({"mlx5_0", {"10.0.0.1"}});
  const absl::Status status =
      CallFailed(&verbs, EINVAL, "create a queue pair", device);
  EXPECT_EQ(status.message(),
            "create a queue pair on mlx5_0: Invalid argument");
  EXPECT_EQ(CallFailed(&verbs, EINVAL, "listen", nullptr).message(),
            "listen: Invalid argument");
}

TEST(StatusTest, WhatUsersCanChangeIsSaid) {
  FakeVerbs verbs;
  const auto message = [&](int error_number) {
    const absl::Status status = CallFailed(&verbs, error_number, "x", nullptr);
    return std::string(status.message());
  };
  EXPECT_TRUE(absl::StrContains(message(ENOMEM), "ulimit -l"));
  EXPECT_TRUE(absl::StrContains(message(EACCES), "/dev/infiniband"));
  EXPECT_TRUE(absl::StrContains(message(EPERM), "/dev/infiniband"));
  EXPECT_TRUE(absl::StrContains(message(ENODEV), "rdma link"));
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
