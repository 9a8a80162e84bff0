// Tests which ways of reaching GPU memory are tried, in which order, and how
// often.

#include "transport/fabric/verbs/gpu_reach.h"

#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class GpuReachTest : public testing::Test {
 protected:
  // Registers only in the ways of `works_`. Records the ways that are tried.
  absl::Status Register(GpuUse use) { return RegisterBy(&reach_, use); }
  absl::Status RegisterBy(GpuReach* reach, GpuUse use) {
    tried_.clear();
    return reach->Register(use, [this](GpuWay way, bool is_trial) {
      std::string text = way == GpuWay::kDmabuf ? "dmabuf" : "peermem";
      tried_.push_back(is_trial ? text + "?" : text);
      return works_ == text ? absl::OkStatus()
                            : absl::InternalError("no " + text);
    });
  }

  using Tried = std::vector<std::string>;
  GpuReach reach_;
  std::string works_;
  Tried tried_;
};

TEST_F(GpuReachTest, WhatWorksIsTriedOnce) {
  works_ = "dmabuf";
  EXPECT_TRUE(Register(GpuUse::kSend).ok());
  EXPECT_EQ(tried_, (Tried{"peermem?", "dmabuf?"}));
  EXPECT_TRUE(Register(GpuUse::kSend).ok());
  EXPECT_EQ(tried_, Tried{"dmabuf"});
  EXPECT_EQ(reach_.way(GpuUse::kSend), GpuWay::kDmabuf);
}

TEST_F(GpuReachTest, EachUseHasItsOwnWay) {
  works_ = "peermem";
  EXPECT_TRUE(Register(GpuUse::kSend).ok());
  EXPECT_FALSE(reach_.way(GpuUse::kReceive).has_value());
  works_ = "dmabuf";
  EXPECT_TRUE(Register(GpuUse::kReceive).ok());
  EXPECT_EQ(tried_, Tried{"dmabuf?"});
  EXPECT_EQ(reach_.way(GpuUse::kSend), GpuWay::kPeermem);
  EXPECT_EQ(reach_.Describe(true),
            "GPUDirect by peermem to send, by dmabuf for destinations");
  EXPECT_EQ(reach_.Describe(false), "GPUDirect by dmabuf for destinations");
}

TEST_F(GpuReachTest, PausesAfterTheThirdTry) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(reach_.may_be(GpuUse::kSend));
    EXPECT_EQ(Register(GpuUse::kSend).message(),
              "peermem: no peermem; dmabuf: no dmabuf");
    EXPECT_EQ(tried_, (Tried{"peermem?", "dmabuf?"}));
  }
  EXPECT_FALSE(reach_.may_be(GpuUse::kSend));
  EXPECT_FALSE(Register(GpuUse::kSend).ok());
  EXPECT_EQ(tried_, Tried{});
  EXPECT_TRUE(reach_.may_be(GpuUse::kReceive));
  EXPECT_EQ(reach_.Describe(true),
            "memory of GPUs staged, not to send: peermem: no peermem; dmabuf: "
            "no dmabuf");
  EXPECT_EQ(reach_.Describe(false), "");
}

TEST_F(GpuReachTest, TriesAgainAfterThePause) {
  GpuReach reach(absl::Milliseconds(20));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(RegisterBy(&reach, GpuUse::kSend).ok());
  }
  for (int i = 0; i < 2; ++i) {
    while (!reach.may_be(GpuUse::kSend)) std::this_thread::yield();
    EXPECT_NE(reach.Describe(true), "") << "why it does not work is still so";
    EXPECT_FALSE(RegisterBy(&reach, GpuUse::kSend).ok());
    EXPECT_EQ(tried_, (Tried{"peermem?", "dmabuf?"}));
  }
  while (!reach.may_be(GpuUse::kSend)) std::this_thread::yield();
  works_ = "peermem";
  EXPECT_TRUE(RegisterBy(&reach, GpuUse::kSend).ok());
  EXPECT_EQ(reach.Describe(true), "GPUDirect by peermem to send");
}

TEST_F(GpuReachTest, PausesAnewAfterEachFurtherFailure) {
  GpuReach reach(absl::ZeroDuration());
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(RegisterBy(&reach, GpuUse::kSend).ok());
    EXPECT_TRUE(reach.may_be(GpuUse::kSend));
  }
  EXPECT_FALSE(RegisterBy(&reach, GpuUse::kSend).ok());
  EXPECT_FALSE(tried_.empty());
}

TEST_F(GpuReachTest, WhatIsKnownToWorkIsNeverGivenUp) {
  works_ = "dmabuf";
  EXPECT_TRUE(Register(GpuUse::kReceive).ok());
  works_ = "";
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(Register(GpuUse::kReceive).code(), absl::StatusCode::kInternal);
  }
  EXPECT_TRUE(reach_.may_be(GpuUse::kReceive));
  EXPECT_EQ(reach_.Describe(true),
            "GPUDirect by dmabuf for destinations, not of all memory: no "
            "dmabuf");
}

TEST_F(GpuReachTest, OneWayForBothIsSaidOnce) {
  EXPECT_EQ(reach_.Describe(true), "") << "nothing is known yet";
  works_ = "peermem";
  EXPECT_TRUE(Register(GpuUse::kSend).ok());
  EXPECT_EQ(reach_.Describe(true), "GPUDirect by peermem to send");
  EXPECT_TRUE(Register(GpuUse::kReceive).ok());
  EXPECT_EQ(reach_.Describe(true), "GPUDirect by peermem");
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
