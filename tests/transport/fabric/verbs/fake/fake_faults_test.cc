// Tests the order of the simulated network, and the faults that tests request.

#include <cerrno>
#include <cstring>
#include <memory>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/connected_test.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

TEST_F(ConnectedTest, HeldWorkGoesStepByStepInOrder) {
  FakeVerbs& verbs = pair_->verbs;
  verbs.Hold();
  pair_->Post(client_, IBV_WR_RDMA_WRITE, FakePair::Part(*client_),
              At(*server_), server_->mr->rkey);
  verbs.Disconnect(server_->id);
  EXPECT_TRUE(pair_->Poll(client_).empty());
  EXPECT_TRUE(verbs.Step());
  EXPECT_EQ(Only(client_).status, IBV_WC_RETRY_EXC_ERR);
  EXPECT_EQ(pair_->NextEvent(client_), -1);
  EXPECT_TRUE(verbs.Step());
  EXPECT_EQ(pair_->NextEvent(client_), RDMA_CM_EVENT_DISCONNECTED);
  EXPECT_FALSE(verbs.Step());
}

TEST_F(ConnectedTest, CutLinkSwallowsWithoutAWord) {
  FakeVerbs& verbs = pair_->verbs;
  verbs.CutLink("client", "server");
  const auto read = [&] {
    return pair_->Post(client_, IBV_WR_RDMA_READ, FakePair::Part(*client_),
                       At(*server_), server_->mr->rkey);
  };
  ASSERT_EQ(read(), 0);
  EXPECT_TRUE(pair_->Poll(client_).empty());
  verbs.RestoreLink("client", "server");
  EXPECT_EQ(Only(client_).status, IBV_WC_SUCCESS);
  verbs.PortDown("server");
  EXPECT_EQ(AsyncEvent(server_), IBV_EVENT_PORT_ERR);
  read();
  EXPECT_TRUE(pair_->Poll(client_).empty());
  verbs.PortUp("server");
  EXPECT_EQ(AsyncEvent(server_), IBV_EVENT_PORT_ACTIVE);
  EXPECT_EQ(Only(client_).status, IBV_WC_SUCCESS);
}

TEST_F(ConnectedTest, OrderedCompletionFailsOneRequest) {
  pair_->verbs.CompleteNext(IBV_WR_RDMA_READ, IBV_WC_RETRY_EXC_ERR);
  pair_->Post(client_, IBV_WR_RDMA_WRITE, FakePair::Part(*client_),
              At(*server_), server_->mr->rkey);
  EXPECT_EQ(Only(client_).status, IBV_WC_SUCCESS);
  pair_->Post(client_, IBV_WR_RDMA_READ, FakePair::Part(*client_), At(*server_),
              server_->mr->rkey);
  EXPECT_EQ(Only(client_).status, IBV_WC_RETRY_EXC_ERR);
}

TEST_F(ConnectedTest, RemovedDeviceTellsEveryone) {
  FakeVerbs& verbs = pair_->verbs;
  verbs.RemoveDevice("client");
  EXPECT_EQ(pair_->NextEvent(client_), RDMA_CM_EVENT_DEVICE_REMOVAL);
  EXPECT_EQ(AsyncEvent(client_), IBV_EVENT_QP_LAST_WQE_REACHED);
  EXPECT_EQ(AsyncEvent(client_), IBV_EVENT_DEVICE_FATAL);
  EXPECT_EQ(verbs.AllocPd(client_->device), nullptr);
  EXPECT_EQ(errno, EIO);
  pair_->Post(client_, IBV_WR_SEND, FakePair::Part(*client_));
  EXPECT_EQ(Only(client_).status, IBV_WC_WR_FLUSH_ERR);
}

TEST_F(ConnectedTest, NothingIsLeftAfterAnOrderlyEnd) {
  FakeVerbs& verbs = pair_->verbs;
  const Counts counts = verbs.counts();
  EXPECT_EQ(counts.qps, 2);
  EXPECT_EQ(counts.ids, 3);
  EXPECT_EQ(counts.registered_bytes, 8192u);
  EXPECT_TRUE(verbs.misuse().empty());
  EXPECT_EQ(verbs.DeallocPd(client_->pd), EBUSY);
  EXPECT_EQ(verbs.DestroySrq(client_->srq), EBUSY);
  EXPECT_EQ(verbs.DestroyCq(client_->cq), EBUSY);
  EXPECT_EQ(verbs.DestroyCompChannel(client_->channel), EBUSY);
  EXPECT_EQ(verbs.misuse().size(), 4u);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
