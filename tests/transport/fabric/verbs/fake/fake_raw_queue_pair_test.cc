// Tests queue pairs of a fake device that their owner connects without the
// connection manager.

#include <cerrno>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr int kToInit =
    IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
constexpr int kToRtr = IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU |
                       IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                       IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
constexpr int kToRts = IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT |
                       IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
                       IBV_QP_MAX_QP_RD_ATOMIC;

class FakeRawQueuePairTest : public testing::Test {
 protected:
  FakeRawQueuePairTest() {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = cq_;
    attr.cap.max_send_wr = 4;
    attr.cap.max_send_sge = 1;
    attr.qp_type = IBV_QPT_RC;
    for (ibv_qp*& qp : pair_) qp = verbs_.IbvCreateQp(pd_, &attr);
    ibv_gid_entry gid;
    EXPECT_EQ(verbs_.QueryGidTable(device_, &gid, 1), 1);
    attr_.port_num = 1;
    attr_.qp_access_flags = IBV_ACCESS_REMOTE_READ;
    attr_.ah_attr.is_global = 1;
    attr_.ah_attr.grh.dgid = gid.gid;
    attr_.max_rd_atomic = attr_.max_dest_rd_atomic = 1;
  }
  ~FakeRawQueuePairTest() override {
    for (ibv_qp* qp : pair_) EXPECT_EQ(verbs_.IbvDestroyQp(qp), 0);
    verbs_.DeregMr(mr_);
    verbs_.DestroyCq(cq_);
    verbs_.DeallocPd(pd_);
    EXPECT_EQ(verbs_.leaks(), std::vector<std::string>());
  }

  int Modify(ibv_qp* qp, ibv_qp_state state, int mask) {
    attr_.qp_state = state;
    return verbs_.ModifyQp(qp, &attr_, mask);
  }
  void Connect() {
    for (int i = 0; i < 2; ++i) {
      attr_.dest_qp_num = pair_[1 - i]->qp_num;
      EXPECT_EQ(Modify(pair_[i], IBV_QPS_INIT, kToInit), 0);
      EXPECT_EQ(Modify(pair_[i], IBV_QPS_RTR, kToRtr), 0);
      EXPECT_EQ(Modify(pair_[i], IBV_QPS_RTS, kToRts), 0);
    }
  }
  // Makes the first end read from the second.
  ibv_wc_status Read() {
    ibv_sge into = {reinterpret_cast<uint64_t>(memory_), 8, mr_->lkey};
    ibv_send_wr request = {};
    request.opcode = IBV_WR_RDMA_READ;
    request.send_flags = IBV_SEND_SIGNALED;
    request.sg_list = &into;
    request.num_sge = 1;
    request.wr.rdma.remote_addr = reinterpret_cast<uint64_t>(memory_ + 8);
    request.wr.rdma.rkey = mr_->rkey;
    ibv_send_wr* bad = nullptr;
    EXPECT_EQ(verbs_.PostSend(pair_[0], &request, &bad), 0);
    ibv_wc completion = {};
    EXPECT_EQ(verbs_.PollCq(cq_, 1, &completion), 1);
    return completion.status;
  }

  FakeVerbs verbs_;
  ibv_context* const device_ = verbs_.AddDevice({"mlx5_0", {"10.0.0.1"}});
  ibv_pd* const pd_ = verbs_.AllocPd(device_);
  ibv_cq* const cq_ = verbs_.CreateCq(device_, 16, nullptr, nullptr, 0);
  char memory_[16] = "........message";
  ibv_mr* const mr_ =
      verbs_.RegMr(pd_, memory_, sizeof memory_,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ);
  ibv_qp* pair_[2] = {};
  ibv_qp_attr attr_ = {};
};

TEST_F(FakeRawQueuePairTest, ConnectedPairReads) {
  Connect();
  EXPECT_EQ(Read(), IBV_WC_SUCCESS);
  EXPECT_EQ(std::string(memory_, 8), std::string("message\0", 8));
}

TEST_F(FakeRawQueuePairTest, TransitionsComeInOrderAndComplete) {
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTR, kToRtr), EINVAL);
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_INIT, kToInit & ~IBV_QP_PORT), EINVAL);
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_INIT, kToInit), 0);
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTS, kToRts), EINVAL);
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTR, kToRtr & ~IBV_QP_AV), EINVAL);
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTR, kToRtr), 0);
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTS, kToRts & ~IBV_QP_SQ_PSN), EINVAL);
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTS, kToRts), 0);
}

TEST_F(FakeRawQueuePairTest, AddressOfNobodyIsRefused) {
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_INIT, kToInit), 0);
  attr_.ah_attr.grh.dgid.raw[15] ^= 1;
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTR, kToRtr), EINVAL);
  attr_.ah_attr.grh.dgid.raw[15] ^= 1;
  attr_.ah_attr.grh.sgid_index = 1;
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTR, kToRtr), EINVAL);
  attr_.ah_attr.grh.sgid_index = 0;
  attr_.ah_attr.is_global = 0;
  EXPECT_EQ(Modify(pair_[0], IBV_QPS_RTR, kToRtr), EINVAL);
}

TEST_F(FakeRawQueuePairTest, SequenceNumbersMustAgree) {
  attr_.sq_psn = 5;
  Connect();
  EXPECT_EQ(Read(), IBV_WC_RETRY_EXC_ERR);
}

TEST_F(FakeRawQueuePairTest, QueuePairThatPermitsNoReadsIsNotRead) {
  attr_.qp_access_flags = 0;
  Connect();
  EXPECT_EQ(Read(), IBV_WC_REM_ACCESS_ERR);
}

TEST_F(FakeRawQueuePairTest, NothingIsPostedBeforeItIsReady) {
  ibv_send_wr request = {};
  request.opcode = IBV_WR_SEND;
  ibv_send_wr* bad = nullptr;
  EXPECT_EQ(verbs_.PostSend(pair_[0], &request, &bad), EINVAL);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
