// Tests that the fake connection manager reports the events of librdmacm, in
// the same order.

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/fake/fake_pair.h"
#include "tests/transport/fabric/verbs/fake/fake_verbs.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class CmTest : public testing::Test {
 protected:
  explicit CmTest(NetworkOptions options = {}) : pair_(options) {}
  ~CmTest() override {
    if (child_ != nullptr) Drop(&child_);
    if (id_ != nullptr) Drop(&id_);
    if (listener_ != nullptr) Drop(&listener_);
  }
  void Drop(rdma_cm_id** id) {
    if ((*id)->qp != nullptr) verbs_.DestroyQp(*id);
    verbs_.DestroyId(*id);
    *id = nullptr;
  }
  void Listen() {
    sockaddr_storage address = AddressOf("10.0.0.2", 0);
    verbs_.CreateId(pair_.server.events, &listener_, this, RDMA_PS_TCP);
    ASSERT_EQ(verbs_.BindAddr(listener_, Generic(&address)), 0);
    ASSERT_EQ(verbs_.Listen(listener_, 0), 0);
    port_ = ntohs(verbs_.GetSrcPort(listener_));
  }
  void CreateQp(rdma_cm_id* id, const FakeSide& side) {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = side.cq;
    attr.srq = side.srq;
    attr.cap.max_send_wr = 1;
    attr.qp_type = IBV_QPT_RC;
    ASSERT_EQ(verbs_.CreateQp(id, side.pd, &attr), 0);
  }
  void Resolve(const std::string& ip) {
    sockaddr_storage from = AddressOf("10.0.0.1", 0);
    sockaddr_storage to = AddressOf(ip, port_);
    verbs_.CreateId(pair_.client.events, &id_, nullptr, RDMA_PS_TCP);
    ASSERT_EQ(verbs_.ResolveAddr(id_, Generic(&from), Generic(&to), 1), 0);
  }
  void Request(const std::string& data) {
    Resolve("10.0.0.2");
    ASSERT_EQ(pair_.NextEvent(&pair_.client), RDMA_CM_EVENT_ADDR_RESOLVED);
    verbs_.ResolveRoute(id_, 1);
    ASSERT_EQ(pair_.NextEvent(&pair_.client), RDMA_CM_EVENT_ROUTE_RESOLVED);
    CreateQp(id_, pair_.client);
    rdma_conn_param param = FakePair::Params();
    param.initiator_depth = 3;
    param.private_data = data.data();
    param.private_data_len = static_cast<uint8_t>(data.size());
    ASSERT_EQ(verbs_.Connect(id_, &param), 0);
  }
  rdma_cm_event* Get(const FakeSide& side) {
    rdma_cm_event* event = nullptr;
    EXPECT_EQ(verbs_.GetCmEvent(side.events, &event), 0);
    return event;
  }
  // Takes the request of the client, which becomes child_.
  void TakeRequest() {
    rdma_cm_event* const event = Get(pair_.server);
    ASSERT_EQ(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
    child_ = event->id;
    verbs_.AckCmEvent(event);
  }
  void ExpectNothingWrong() {
    EXPECT_EQ(verbs_.misuse(), std::vector<std::string>());
  }

  FakePair pair_;
  FakeVerbs& verbs_ = pair_.verbs;
  rdma_cm_id* listener_ = nullptr;
  rdma_cm_id* id_ = nullptr;
  rdma_cm_id* child_ = nullptr;
  uint16_t port_ = 1;
};

TEST_F(CmTest, RequestCarriesPaddedDataAndSwappedDepths) {
  Listen();
  Request("token");
  rdma_cm_event* const event = Get(pair_.server);
  ASSERT_EQ(event->event, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(event->listen_id, listener_);
  child_ = event->id;
  EXPECT_EQ(child_->context, this);
  EXPECT_EQ(child_->verbs, pair_.server.device);
  const rdma_conn_param& param = event->param.conn;
  ASSERT_EQ(param.private_data_len, 56);
  EXPECT_EQ(std::string(static_cast<const char*>(param.private_data), 56),
            "token" + std::string(51, '\0'));
  EXPECT_EQ(param.responder_resources, 3);
  EXPECT_EQ(param.initiator_depth, 16);
  verbs_.AckCmEvent(event);
  ExpectNothingWrong();
}

TEST_F(CmTest, TooMuchPrivateDataIsRefused) {
  Listen();
  Request("x");
  rdma_conn_param param = FakePair::Params();
  param.private_data = "";
  TakeRequest();
  CreateQp(child_, pair_.server);
  param.private_data_len = 197;
  EXPECT_EQ(verbs_.Accept(child_, &param), -1);
  EXPECT_EQ(errno, EINVAL);
}

TEST_F(CmTest, QueuePairsAreReadyWhenTheEventIsTaken) {
  Listen();
  Request("");
  TakeRequest();
  CreateQp(child_, pair_.server);
  EXPECT_EQ(child_->qp->state, IBV_QPS_INIT);
  rdma_conn_param param = FakePair::Params();
  ASSERT_EQ(verbs_.Accept(child_, &param), 0);
  EXPECT_EQ(child_->qp->state, IBV_QPS_RTS);
  EXPECT_EQ(id_->qp->state, IBV_QPS_INIT);
  EXPECT_EQ(pair_.NextEvent(&pair_.server), -1);
  rdma_cm_event* const event = Get(pair_.client);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_ESTABLISHED);
  EXPECT_EQ(event->param.conn.private_data_len, 196);
  verbs_.AckCmEvent(event);
  EXPECT_EQ(id_->qp->state, IBV_QPS_RTS);
  EXPECT_EQ(pair_.NextEvent(&pair_.server), RDMA_CM_EVENT_ESTABLISHED);
  ibv_qp_attr attr;
  ibv_qp_init_attr init;
  verbs_.QueryQp(id_->qp, &attr, IBV_QP_STATE, &init);
  EXPECT_EQ(attr.max_rd_atomic, 3);
}

TEST_F(CmTest, RejectCarriesReasonAndData) {
  Listen();
  Request("");
  TakeRequest();
  ASSERT_EQ(verbs_.Reject(child_, "no", 2), 0);
  rdma_cm_event* const event = Get(pair_.client);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event->status, 28);
  EXPECT_EQ(event->param.conn.private_data_len, 148);
  EXPECT_STREQ(static_cast<const char*>(event->param.conn.private_data), "no");
  verbs_.AckCmEvent(event);
  EXPECT_EQ(verbs_.Accept(child_, nullptr), -1);
}

TEST_F(CmTest, NobodyListeningIsReasonEight) {
  Request("");
  rdma_cm_event* const event = Get(pair_.client);
  EXPECT_EQ(event->event, RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(event->status, 8);
  verbs_.AckCmEvent(event);
}

class SilentCmTest : public CmTest {
 protected:
  static NetworkOptions Silent() {
    NetworkOptions options;
    options.silent_hosts = true;
    return options;
  }
  SilentCmTest() : CmTest(Silent()) {}
};

TEST_F(SilentCmTest, NobodyListeningIsUnreachable) {
  Request("");
  EXPECT_EQ(pair_.NextEvent(&pair_.client), RDMA_CM_EVENT_UNREACHABLE);
}

TEST_F(CmTest, UnknownAddressIsAnError) {
  Resolve("10.9.9.9");
  EXPECT_EQ(pair_.NextEvent(&pair_.client), RDMA_CM_EVENT_ADDR_ERROR);
}

TEST_F(CmTest, ForeignAddressIsNotBoundAndAPortOnlyOnce) {
  Listen();
  rdma_cm_id* id = nullptr;
  verbs_.CreateId(pair_.server.events, &id, nullptr, RDMA_PS_TCP);
  sockaddr_storage foreign = AddressOf("10.9.9.9", 0);
  EXPECT_EQ(verbs_.BindAddr(id, Generic(&foreign)), -1);
  EXPECT_EQ(errno, ENODEV);
  sockaddr_storage taken = AddressOf("10.0.0.2", port_);
  EXPECT_EQ(verbs_.BindAddr(id, Generic(&taken)), -1);
  EXPECT_EQ(errno, EADDRINUSE);
  verbs_.DestroyId(id);
}

TEST_F(CmTest, ListenerTakesItsRequestsAlong) {
  Listen();
  Request("");
  Drop(&listener_);
  EXPECT_EQ(pair_.NextEvent(&pair_.client), RDMA_CM_EVENT_REJECTED);
  EXPECT_EQ(pair_.NextEvent(&pair_.server), -1);
  ExpectNothingWrong();
}

TEST_F(CmTest, ClientThatGoesIsTold) {
  Listen();
  Request("");
  TakeRequest();
  Drop(&id_);
  EXPECT_EQ(pair_.NextEvent(&pair_.server), RDMA_CM_EVENT_REJECTED);
  ExpectNothingWrong();
}

TEST_F(CmTest, HeldRequestIsNotSeen) {
  Listen();
  verbs_.CutLink("client", "server");
  Request("");
  EXPECT_EQ(pair_.NextEvent(&pair_.server), -1);
  verbs_.RestoreLink("client", "server");
  TakeRequest();
}

TEST_F(CmTest, IdDestroyedTooEarlyIsNoted) {
  Listen();
  Request("");
  rdma_cm_event* const event = Get(pair_.server);
  child_ = event->id;
  verbs_.DestroyId(listener_);
  listener_ = nullptr;
  EXPECT_EQ(verbs_.misuse().size(), 1u) << "its event is not acknowledged";
  verbs_.AckCmEvent(event);
  verbs_.DestroyId(id_);
  id_ = nullptr;
  EXPECT_EQ(verbs_.misuse().size(), 2u) << "its queue pair is there";
}

TEST_F(CmTest, BlockingChannelWaits) {
  Listen();
  const int fd = pair_.server.events->fd;
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  std::thread taker([&] { TakeRequest(); });
  Request("");
  taker.join();
  EXPECT_NE(child_, nullptr);
}

TEST_F(CmTest, OrderedFailuresKeepTheConvention) {
  verbs_.FailNext(Call::kCreateId, ENODEV, /*after=*/1);
  rdma_cm_id* id = nullptr;
  ASSERT_EQ(verbs_.CreateId(pair_.client.events, &id, nullptr, RDMA_PS_TCP), 0);
  rdma_cm_id* other = nullptr;
  EXPECT_EQ(verbs_.CreateId(pair_.client.events, &other, nullptr, RDMA_PS_TCP),
            -1);
  EXPECT_EQ(errno, ENODEV);
  verbs_.DestroyId(id);
  verbs_.FailNext(Call::kAllocPd, ENOMEM);
  EXPECT_EQ(verbs_.AllocPd(pair_.client.device), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  verbs_.FailNext(Call::kDeregMr, EIO);
  EXPECT_EQ(verbs_.DeregMr(pair_.client.mr), EIO);
  ibv_wc wc;
  verbs_.FailNext(Call::kPollCq, EIO);
  EXPECT_LT(verbs_.PollCq(pair_.client.cq, 1, &wc), 0);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
