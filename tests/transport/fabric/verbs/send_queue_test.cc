// Tests that requests are sent in order and end in order, and that some are
// signalled.

#include "transport/fabric/verbs/send_queue.h"

#include <cerrno>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using Kind = SendQueue::Kind;
using Signal = SendQueue::Signal;

// Records the posted requests.
class PostedVerbs : public FakeVerbs {
 public:
  int PostSend(ibv_qp*, ibv_send_wr* request, ibv_send_wr** bad) override {
    ++calls;
    if (error_number != 0) *bad = request;
    if (error_number != 0) return error_number;
    for (; request != nullptr; request = request->next) {
      posted.push_back(*request);
    }
    return 0;
  }

  int error_number = 0;
  int calls = 0;
  std::vector<ibv_send_wr> posted;
};

class SendQueueTest : public testing::Test {
 protected:
  SendQueueTest() { qp_.context = verbs_.AddDevice({"mlx5_0", {"10.0.0.1"}}); }

  void Add(uint64_t cookie, Signal signal = Signal::kWhenDue) {
    ASSERT_FALSE(queue_.full());
    queue_.Add(Kind::kPacket, cookie, signal);
  }
  bool Post() { return queue_.Post(&qp_).ok(); }
  bool IsSignaled(size_t i) const {
    return (verbs_.posted.at(i).send_flags & IBV_SEND_SIGNALED) != 0;
  }
  // Returns the cookies of the requests that ended with `wr_id`.
  std::vector<uint64_t> Pop(uint64_t wr_id) {
    std::vector<uint64_t> cookies;
    for (SendQueue::Done done; queue_.Pop(wr_id, &done);) {
      cookies.push_back(done.cookie);
    }
    return cookies;
  }

  PostedVerbs verbs_;
  ibv_qp qp_ = {};
  SendQueue queue_{&verbs_, /*capacity=*/8, /*signal_every=*/2};
};

TEST_F(SendQueueTest, WhatWasAddedLeavesTogetherInOrder) {
  for (uint64_t i = 0; i < 5; ++i) {
    queue_.Add(Kind::kPacket, i, Signal::kWhenDue)->opcode =
        i % 2 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_READ;
  }
  EXPECT_EQ(verbs_.calls, 0);
  ASSERT_TRUE(Post());
  EXPECT_EQ(verbs_.calls, 1);
  ASSERT_EQ(verbs_.posted.size(), 5u);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(verbs_.posted[i].opcode,
              i % 2 == 0 ? IBV_WR_SEND : IBV_WR_RDMA_READ);
    EXPECT_EQ(verbs_.posted[i].num_sge, 1);
    EXPECT_NE(verbs_.posted[i].sg_list, nullptr);
  }
}

TEST_F(SendQueueTest, NothingIsPostedTwiceNorForNothing) {
  ASSERT_TRUE(Post());
  EXPECT_EQ(verbs_.calls, 0);
  Add(1);
  ASSERT_TRUE(Post());
  ASSERT_TRUE(Post());
  Add(2);
  ASSERT_TRUE(Post());
  EXPECT_EQ(verbs_.posted.size(), 2u);
}

TEST_F(SendQueueTest, OneInAFewIsSignaled) {
  for (uint64_t i = 0; i < 8; ++i) Add(i);
  ASSERT_TRUE(Post());
  for (size_t i = 0; i < 8; ++i) EXPECT_EQ(IsSignaled(i), i % 3 == 2) << i;
}

TEST_F(SendQueueTest, OneThatMattersIsSignaledAndCountsForTheOthers) {
  Add(0);
  Add(1, Signal::kNow);
  EXPECT_TRUE(queue_.last_is_signaled());
  EXPECT_TRUE(queue_.awaits_completion());
  Add(2);
  EXPECT_FALSE(queue_.last_is_signaled());
  Add(3);
  Add(4);
  ASSERT_TRUE(Post());
  const std::vector<bool> expected = {false, true, false, false, true};
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(IsSignaled(i), expected[i]) << i;
  }
}

TEST_F(SendQueueTest, EndOfOneIsTheEndOfAllBefore) {
  for (uint64_t i = 0; i < 6; ++i) Add(100 + i);
  ASSERT_TRUE(Post());
  EXPECT_EQ(queue_.under_way(), 6u);
  EXPECT_EQ(Pop(verbs_.posted[2].wr_id),
            (std::vector<uint64_t>{100, 101, 102}));
  EXPECT_EQ(queue_.under_way(), 3u);
  EXPECT_EQ(queue_.ended(), 3u);
  EXPECT_EQ(Pop(verbs_.posted[5].wr_id),
            (std::vector<uint64_t>{103, 104, 105}));
  EXPECT_EQ(Pop(verbs_.posted[5].wr_id), std::vector<uint64_t>()) << "again";
  EXPECT_EQ(queue_.under_way(), 0u);
}

TEST_F(SendQueueTest, BogusCompletionEndsNothing) {
  EXPECT_TRUE(Pop(0).empty());
  Add(1);
  EXPECT_TRUE(Pop(0).empty()) << "it was not posted yet";
  ASSERT_TRUE(Post());
  Add(2);
  const uint64_t id = verbs_.posted[0].wr_id;
  for (const uint64_t bogus :
       {id + 1, id + 8, id - 1, ~uint64_t{0}, uint64_t{1} << 63}) {
    EXPECT_TRUE(Pop(bogus).empty()) << bogus;
  }
  EXPECT_EQ(Pop(id), std::vector<uint64_t>{1});
}

TEST_F(SendQueueTest, FullUntilOneHasEnded) {
  for (uint64_t i = 0; i < 8; ++i) Add(i);
  EXPECT_TRUE(queue_.full());
  ASSERT_TRUE(Post());
  EXPECT_TRUE(queue_.full()) << "posting is not the end";
  EXPECT_EQ(Pop(verbs_.posted[0].wr_id).size(), 1u);
  EXPECT_FALSE(queue_.full());
}

TEST_F(SendQueueTest, ManyRoundsKeepOrderAndKinds) {
  uint64_t ended = 0;
  for (uint64_t i = 0; i < 10000; ++i) {
    queue_.Add(i % 2 == 0 ? Kind::kPacket : Kind::kRead, i, Signal::kWhenDue);
    ASSERT_TRUE(Post());
    if (!IsSignaled(i)) continue;
    SendQueue::Done done;
    while (queue_.Pop(verbs_.posted[i].wr_id, &done)) {
      ASSERT_EQ(done.cookie, ended);
      ASSERT_EQ(done.kind, ended % 2 == 0 ? Kind::kPacket : Kind::kRead);
      ++ended;
    }
    ASSERT_FALSE(queue_.full());
  }
  EXPECT_GE(ended, 9998u);
}

TEST_F(SendQueueTest, RefusedPostingIsAnErrorThatNamesTheDevice) {
  Add(1);
  verbs_.error_number = ENOMEM;
  const absl::Status status = queue_.Post(&qp_);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("post a request on mlx5_0"),
            absl::string_view::npos)
      << status;
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
