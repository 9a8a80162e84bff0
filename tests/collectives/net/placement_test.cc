#include "collectives/net/placement.h"

#include <cstdint>
#include <vector>

#include "collectives/schedule/schedule.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

using Buffer = Action::Buffer;
using Kind = Action::Kind;

constexpr int kRank = 0;
constexpr int kPeer = 1;
constexpr int64_t kMiB = 1024 * 1024;
constexpr int64_t kSize = 4;  // of an element, in bytes

Action Make(Kind kind, int64_t begin, int64_t bytes, int peer = kPeer) {
  Action action;
  action.peer = peer;
  action.kind = kind;
  action.range = {begin, bytes / kSize};
  return action;
}

Step StepOf(const std::vector<Action>& actions, bool is_last = false) {
  return {actions, kRank, tensor::DType::kF32, is_last};
}

int64_t LentBytes(const std::vector<Action>& actions, bool is_last = false) {
  return LentElements(StepOf(actions, is_last), actions[0]) * kSize;
}

bool IsInPlace(const std::vector<Action>& actions) {
  return IsReceivedInPlace(StepOf(actions), actions[0]);
}

TEST(Placement, LongSendsAreLent) {
  EXPECT_EQ(LentBytes({Make(Kind::kSend, 0, 64 * 1024)}), 64 * 1024);
  EXPECT_EQ(LentBytes({Make(Kind::kSend, 0, 64 * 1024 - kSize)}), 0);
  EXPECT_EQ(LentBytes({Make(Kind::kSend, 0, kMiB, kRank)}), 0);
}

TEST(Placement, SendsThatTheStepOverwritesAreNotLent) {
  const Action send = Make(Kind::kSend, 100, kMiB);
  const int64_t end = 100 + kMiB / kSize;
  for (const Kind kind : {Kind::kReceive, Kind::kReduceLeft}) {
    EXPECT_EQ(LentBytes({send, Make(kind, end, kMiB)}), kMiB);
    EXPECT_EQ(LentBytes({send, Make(kind, end - 1, kMiB)}), 0);
    EXPECT_EQ(LentBytes({send, Make(kind, 0, 100 * kSize)}), kMiB);
    EXPECT_EQ(LentBytes({send, Make(kind, 0, 101 * kSize)}), 0);
  }
  Action input = send;
  input.buffer = Buffer::kInput;
  EXPECT_EQ(LentBytes({input, Make(Kind::kReceive, 100, kMiB)}), kMiB);
}

TEST(Placement, EndOfTheLastStepIsCopied) {
  const Action receive = Make(Kind::kReceive, 10 * kMiB, 4);
  for (const int64_t bytes : {kMiB / 2 + kSize, kMiB, 10 * kMiB}) {
    EXPECT_EQ(LentBytes({Make(Kind::kSend, 0, bytes), receive}, true),
              bytes - kMiB / 2);
  }
  EXPECT_EQ(LentBytes({Make(Kind::kSend, 0, kMiB / 2), receive}, true), 0);
}

TEST(Placement, RankThatReceivesNothingLastLendsLongerSends) {
  EXPECT_EQ(LentBytes({Make(Kind::kSend, 0, 2 * kMiB)}, true), 3 * kMiB / 2);
  EXPECT_EQ(LentBytes({Make(Kind::kSend, 0, 2 * kMiB - kSize)}, true), 0);
}

TEST(Placement, LongCopiesAreReceivedInPlace) {
  EXPECT_TRUE(IsInPlace({Make(Kind::kReceive, 5, 64 * 1024)}));
  EXPECT_FALSE(IsInPlace({Make(Kind::kReceive, 5, 64 * 1024 - kSize)}));
  EXPECT_FALSE(IsInPlace({Make(Kind::kReceive, 5, kMiB, kRank)}));
  EXPECT_FALSE(IsInPlace({Make(Kind::kReduceLeft, 5, kMiB)}));
  EXPECT_FALSE(IsInPlace({Make(Kind::kReduceRight, 5, kMiB)}));
  EXPECT_FALSE(IsInPlace({Make(Kind::kSend, 5, kMiB)}));
}

TEST(Placement, PlacesThatTheStepUsesOtherwiseAreNotWrittenTo) {
  const Action receive = Make(Kind::kReceive, 100, kMiB);
  const int64_t end = 100 + kMiB / kSize;
  for (const Kind kind : {Kind::kSend, Kind::kReceive, Kind::kReduceLeft}) {
    EXPECT_TRUE(IsInPlace({receive, Make(kind, end, kMiB)}));
    EXPECT_FALSE(IsInPlace({receive, Make(kind, end - 1, kMiB)}));
  }
  Action input = Make(Kind::kSend, 100, kMiB);
  input.buffer = Buffer::kInput;
  EXPECT_TRUE(IsInPlace({receive, input}));
}

}  // namespace
}  // namespace penstock::collectives
