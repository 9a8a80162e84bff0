// Tests that the simulated network does the work of devices, and refuses the
// requests that devices refuse.

#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

#include <cerrno>
#include <cstring>
#include <memory>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/connected_test.h"
#include "tests/transport/fabric/verbs/fake/fake_pair.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

TEST_F(ConnectedTest, MessageArrivesInTheOldestBuffer) {
  std::strcpy(client_->memory.data(), "hello");
  pair_->PostReceive(server_, FakePair::Part(*server_, 100, 64), 11);
  pair_->PostReceive(server_, FakePair::Part(*server_, 200, 64), 12);
  ASSERT_EQ(pair_->Post(client_, IBV_WR_SEND, FakePair::Part(*client_, 0, 6)),
            0);
  EXPECT_STREQ(server_->memory.data() + 100, "hello");
  const ibv_wc received = Only(server_);
  EXPECT_EQ(received.status, IBV_WC_SUCCESS);
  EXPECT_EQ(received.opcode, IBV_WC_RECV);
  EXPECT_EQ(received.wr_id, 11u);
  EXPECT_EQ(received.byte_len, 6u);
  EXPECT_EQ(received.qp_num, server_->id->qp->qp_num);
  EXPECT_EQ(Only(client_).opcode, IBV_WC_SEND);
}

TEST_F(ConnectedTest, InlineDataIsCopiedWhenPostedAndNeedsNoKey) {
  pair_->verbs.Hold();
  char text[] = "before";
  const ibv_sge part = {reinterpret_cast<uint64_t>(text), sizeof text, 0};
  ASSERT_EQ(pair_->Post(client_, IBV_WR_SEND, part, 0, 0, IBV_SEND_INLINE), 0);
  std::strcpy(text, "after");
  pair_->PostReceive(server_, FakePair::Part(*server_));
  pair_->verbs.Release();
  EXPECT_STREQ(server_->memory.data(), "before");
  EXPECT_TRUE(pair_->Poll(client_).empty()) << "unsignalled";
}

TEST_F(ConnectedTest, TooMuchInlineIsRefused) {
  EXPECT_EQ(pair_->Post(client_, IBV_WR_SEND, FakePair::Part(*client_, 0, 65),
                        0, 0, IBV_SEND_INLINE),
            EINVAL);
}

TEST_F(ConnectedTest, ImmediateDataArrives) {
  pair_->PostReceive(server_, FakePair::Part(*server_));
  pair_->Post(client_, IBV_WR_SEND_WITH_IMM, FakePair::Part(*client_), 0, 99);
  const ibv_wc received = Only(server_);
  EXPECT_EQ(received.wc_flags, IBV_WC_WITH_IMM);
  EXPECT_EQ(received.imm_data, 99u);
}

TEST_F(ConnectedTest, ReadAndWriteMoveBytes) {
  std::strcpy(server_->memory.data(), "there");
  std::strcpy(client_->memory.data() + 64, "here");
  const uint32_t rkey = server_->mr->rkey;
  pair_->Post(client_, IBV_WR_RDMA_READ, FakePair::Part(*client_, 0, 64),
              At(*server_), rkey);
  pair_->Post(client_, IBV_WR_RDMA_WRITE, FakePair::Part(*client_, 64, 64),
              At(*server_, 64), rkey);
  EXPECT_STREQ(client_->memory.data(), "there");
  EXPECT_STREQ(server_->memory.data() + 64, "here");
  EXPECT_EQ(pair_->Poll(client_).size(), 2u);
  EXPECT_TRUE(pair_->Poll(server_).empty());
}

TEST_F(ConnectedTest, SendQueueIsFullUntilASignalledCompletionIsPolled) {
  for (uint32_t i = 0; i < FakePair::kSends; ++i) {
    const bool last = i + 1 == FakePair::kSends;
    ASSERT_EQ(pair_->Post(client_, IBV_WR_RDMA_WRITE, FakePair::Part(*client_),
                          At(*server_), server_->mr->rkey,
                          last ? IBV_SEND_SIGNALED : 0),
              0);
  }
  const auto post = [&] {
    return pair_->Post(client_, IBV_WR_RDMA_WRITE, FakePair::Part(*client_),
                       At(*server_), server_->mr->rkey);
  };
  EXPECT_EQ(post(), ENOMEM);
  EXPECT_EQ(pair_->Poll(client_).size(), 1u);
  EXPECT_EQ(post(), 0);
}

TEST_F(ConnectedTest, UnregisteredLocalMemoryBreaksTheQueuePair) {
  ibv_sge part = FakePair::Part(*client_);
  part.lkey = client_->mr->rkey;
  pair_->Post(client_, IBV_WR_RDMA_WRITE, part, At(*server_),
              server_->mr->rkey);
  EXPECT_EQ(Only(client_).status, IBV_WC_LOC_PROT_ERR);
  // Posts requests after a failure. All are flushed, signalled or not.
  pair_->Post(client_, IBV_WR_SEND, FakePair::Part(*client_), 0, 0, 0);
  EXPECT_EQ(Only(client_).status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(ConnectedTest, RefusedAccessBreaksBothSides) {
  pair_->Post(client_, IBV_WR_RDMA_READ, FakePair::Part(*client_, 0, 64),
              At(*server_, 4090), server_->mr->rkey);
  EXPECT_EQ(Only(client_).status, IBV_WC_REM_ACCESS_ERR);
  EXPECT_EQ(AsyncEvent(server_), IBV_EVENT_QP_ACCESS_ERR);
  pair_->Post(server_, IBV_WR_SEND, FakePair::Part(*server_));
  EXPECT_EQ(Only(server_).status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(ConnectedTest, ReadsNeedResponderResources) {
  rdma_conn_param param = FakePair::Params();
  param.responder_resources = 0;
  Start({}, {}, param);
  pair_->Post(client_, IBV_WR_RDMA_READ, FakePair::Part(*client_), At(*server_),
              server_->mr->rkey);
  EXPECT_EQ(Only(client_).status, IBV_WC_REM_INV_REQ_ERR);
}

TEST_F(ConnectedTest, MessageWaitsForABuffer) {
  pair_->Post(client_, IBV_WR_SEND, FakePair::Part(*client_));
  EXPECT_TRUE(pair_->Poll(client_).empty());
  pair_->PostReceive(server_, FakePair::Part(*server_));
  EXPECT_EQ(Only(client_).status, IBV_WC_SUCCESS);
}

TEST_F(ConnectedTest, MessageWaitsNotForeverIfToldSo) {
  NetworkOptions options;
  options.rnr_attempts = 3;
  Start(options, {});
  pair_->verbs.Hold();
  pair_->Post(client_, IBV_WR_SEND, FakePair::Part(*client_));
  EXPECT_FALSE(pair_->verbs.Step());
  EXPECT_FALSE(pair_->verbs.Step());
  EXPECT_TRUE(pair_->verbs.Step());
  EXPECT_EQ(Only(client_).status, IBV_WC_RNR_RETRY_EXC_ERR);
}

TEST_F(ConnectedTest, TooLongMessageBreaksBothSides) {
  pair_->PostReceive(server_, FakePair::Part(*server_, 0, 10));
  pair_->Post(client_, IBV_WR_SEND, FakePair::Part(*client_, 0, 11));
  EXPECT_EQ(Only(server_).status, IBV_WC_LOC_LEN_ERR);
  EXPECT_EQ(Only(client_).status, IBV_WC_REM_INV_REQ_ERR);
}

class WindowTest : public ConnectedTest {
 protected:
  void SetUp() override {
    ConnectedTest::SetUp();
    Open();
  }
  void TearDown() override { pair_->verbs.DeallocMw(mw_); }
  void Open() {
    mw_ = pair_->verbs.AllocMw(server_->pd, IBV_MW_TYPE_2);
    key_ = pair_->BindWindow(server_, mw_, 100, 64);
    ASSERT_EQ(Only(server_).opcode, IBV_WC_BIND_MW);
  }
  ibv_wc_status Read(uint32_t offset, uint32_t key) {
    pair_->Post(client_, IBV_WR_RDMA_READ, FakePair::Part(*client_, 0, 8),
                At(*server_, offset), key);
    return Only(client_).status;
  }

  ibv_mw* mw_ = nullptr;
  uint32_t key_ = 0;
};

TEST_F(WindowTest, ReadInsideWorks) {
  EXPECT_EQ(Read(100, key_), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(156, key_), IBV_WC_SUCCESS);
}

TEST_F(WindowTest, ReadOutsideIsRefused) {
  EXPECT_EQ(Read(157, key_), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, ReadOutsideWorksOnSoftRoce) {
  TearDown();
  DeviceOptions device;
  device.enforce_window_range = false;
  Start({}, device);
  Open();
  EXPECT_EQ(Read(0, key_), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(4090, key_), IBV_WC_REM_ACCESS_ERR) << "outside the region";
}

TEST_F(WindowTest, WritingIsRefused) {
  pair_->Post(client_, IBV_WR_RDMA_WRITE, FakePair::Part(*client_, 0, 8),
              At(*server_, 100), key_);
  EXPECT_EQ(Only(client_).status, IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, KeyIsDeadAfterLocalInvalidation) {
  pair_->Post(server_, IBV_WR_LOCAL_INV, {}, 0, key_);
  EXPECT_EQ(Only(server_).opcode, IBV_WC_LOCAL_INV);
  EXPECT_EQ(Read(100, key_), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, PeerGivesTheKeyBackWithItsMessage) {
  pair_->PostReceive(server_, FakePair::Part(*server_));
  pair_->Post(client_, IBV_WR_SEND_WITH_INV, FakePair::Part(*client_), 0, key_);
  const ibv_wc received = Only(server_);
  EXPECT_EQ(received.wc_flags, IBV_WC_WITH_INV);
  EXPECT_EQ(received.invalidated_rkey, key_);
  (void)pair_->Poll(client_);
  const uint32_t next = pair_->BindWindow(server_, mw_, 100, 64);
  EXPECT_EQ(Only(server_).status, IBV_WC_SUCCESS);
  EXPECT_NE(next, key_);
  EXPECT_EQ(Read(100, next), IBV_WC_SUCCESS);
  EXPECT_EQ(Read(100, key_), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(WindowTest, BoundWindowIsNotBoundAgain) {
  pair_->BindWindow(server_, mw_, 0, 64);
  EXPECT_EQ(Only(server_).status, IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowTest, WindowIsBoundByTheKeyThatItHas) {
  ASSERT_EQ(pair_->Post(server_, IBV_WR_LOCAL_INV, {}, 0, key_), 0);
  (void)pair_->Poll(server_);
  // Puts the window's new key into the caller's structure. Soft-RoCE compares
  // this key with its own.
  mw_->rkey = ibv_inc_rkey(key_);
  pair_->BindWindow(server_, mw_, 0, 64);
  EXPECT_EQ(Only(server_).status, IBV_WC_MW_BIND_ERR);
}

TEST_F(WindowTest, QueuePairEndsAfterTheWindowsBoundThroughIt) {
  pair_->DropQp(client_);
  EXPECT_TRUE(pair_->verbs.misuse().empty()) << "none is bound through it";
  pair_->DropQp(server_);
  EXPECT_EQ(pair_->verbs.misuse().size(), 1u);
}

TEST_F(WindowTest, RegionStaysWhileAWindowIsBound) {
  EXPECT_EQ(pair_->verbs.DeregMr(server_->mr), EBUSY);
  EXPECT_EQ(pair_->verbs.misuse().size(), 1u);
}

TEST_F(ConnectedTest, OneEventPerArming) {
  FakeVerbs& verbs = pair_->verbs;
  const auto write = [&] {
    pair_->Post(client_, IBV_WR_RDMA_WRITE, FakePair::Part(*client_),
                At(*server_), server_->mr->rkey);
  };
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  write();
  ASSERT_EQ(verbs.ReqNotifyCq(client_->cq, 0), 0);
  EXPECT_FALSE(IsReadable(client_->channel->fd)) << "it was there before";
  write();
  write();
  ASSERT_TRUE(IsReadable(client_->channel->fd));
  EXPECT_EQ(verbs.GetCqEvent(client_->channel, &cq, &context), 0);
  EXPECT_EQ(cq, client_->cq);
  EXPECT_EQ(verbs.GetCqEvent(client_->channel, &cq, &context), -1);
  EXPECT_EQ(errno, EAGAIN);
  verbs.AckCqEvents(cq, 1);
}

TEST_F(ConnectedTest, QueueDestroyedWithAnUnacknowledgedEventIsNoted) {
  FakeVerbs& verbs = pair_->verbs;
  verbs.ReqNotifyCq(client_->cq, 0);
  pair_->Post(client_, IBV_WR_RDMA_WRITE, FakePair::Part(*client_),
              At(*server_), server_->mr->rkey);
  ibv_cq* cq = nullptr;
  void* context = nullptr;
  ASSERT_EQ(verbs.GetCqEvent(client_->channel, &cq, &context), 0);
  pair_->DropQp(client_);
  EXPECT_EQ(verbs.DestroyCq(client_->cq), 0);
  EXPECT_EQ(verbs.misuse().size(), 1u);
  client_->cq = verbs.CreateCq(client_->device, 1, nullptr, nullptr, 0);
}

TEST(FakeVerbsTest, OverflowOfACompletionQueueIsNoted) {
  FakePair pair({}, {}, /*cq_entries=*/1);
  pair.Connect();
  for (int i = 0; i < 2; ++i) {
    pair.Post(&pair.client, IBV_WR_RDMA_WRITE, FakePair::Part(pair.client),
              At(pair.server), pair.server.mr->rkey);
  }
  EXPECT_EQ(pair.verbs.misuse().size(), 1u);
  EXPECT_TRUE(IsReadable(pair.client.device->async_fd));
}

TEST_F(ConnectedTest, DisconnectFlushesHereAndIsToldThere) {
  pair_->Post(client_, IBV_WR_SEND, FakePair::Part(*client_), 0, 0, 0);
  ASSERT_EQ(pair_->verbs.Disconnect(client_->id), 0);
  EXPECT_EQ(Only(client_).status, IBV_WC_WR_FLUSH_ERR);
  EXPECT_EQ(pair_->NextEvent(server_), RDMA_CM_EVENT_DISCONNECTED);
  // Sends from the peer, whose queue pair learns of the end only by this.
  pair_->Post(server_, IBV_WR_SEND, FakePair::Part(*server_));
  EXPECT_EQ(Only(server_).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(pair_->NextEvent(client_), -1);
  ASSERT_EQ(pair_->verbs.Disconnect(server_->id), 0);
  EXPECT_EQ(pair_->NextEvent(client_), RDMA_CM_EVENT_DISCONNECTED);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
