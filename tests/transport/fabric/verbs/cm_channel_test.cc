// Tests that events of the connection manager reach the handler that they
// concern, or no handler.

#include "transport/fabric/verbs/cm_channel.h"

#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/drain_loop.h"
#include "tests/transport/fabric/verbs/fake/fake_pair.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

class Handler : public CmHandler {
 public:
  void OnCmEvent(CmEvent event) override {
    events.push_back(std::move(event));
    if (on_event) on_event();
  }
  std::vector<CmEvent> events;
  std::function<void()> on_event;
};

class CmChannelTest : public testing::Test {
 protected:
  CmChannelTest() {
    verbs_.AddDevice({"client", {"10.0.0.1"}});
    verbs_.AddDevice({"server", {"10.0.0.2"}});
    channel_ = *CmChannel::Create(&verbs_, progress::EventLoop::Get().value());
  }
  ~CmChannelTest() override {
    listener_.Reset();
    channel_.reset();
    DrainLoop();
    EXPECT_EQ(verbs_.leaks(), std::vector<std::string>());
  }

  CmId NewId(const std::shared_ptr<Handler>& handler) {
    CmId id = channel_->NewId().value();
    channel_->SetHandler(id.get(), handler);
    return id;
  }
  void Resolve(const CmId& id) {
    sockaddr_storage from = AddressOf("10.0.0.1", 0);
    sockaddr_storage to = AddressOf("10.0.0.2", 4242);
    ASSERT_EQ(verbs_.ResolveAddr(id.get(), Generic(&from), Generic(&to), 1), 0);
    DrainLoop();
  }
  void ListenWith(const std::shared_ptr<Handler>& handler) {
    listener_ = NewId(handler);
    sockaddr_storage at = AddressOf("10.0.0.2", 4242);
    ASSERT_EQ(verbs_.BindAddr(listener_.get(), Generic(&at)), 0);
    ASSERT_EQ(verbs_.Listen(listener_.get(), 0), 0);
  }
  // Connects up to the request, whose private data is `text`. The caller's
  // events reach the caller's handler.
  struct Caller {
    CmId id;
    ProtectionDomain pd;
    CompletionQueue cq;
    SharedReceiveQueue srq;
  };
  void Request(Caller* caller, std::string text) {
    ASSERT_EQ(verbs_.ResolveRoute(caller->id.get(), 1), 0);
    DrainLoop();
    caller->pd = *AllocPd(&verbs_, caller->id->verbs);
    caller->cq = *CreateCq(&verbs_, caller->id->verbs, 8, nullptr);
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = caller->cq.get();
    attr.qp_type = IBV_QPT_RC;
    attr.cap.max_send_wr = 1;
    ASSERT_EQ(verbs_.CreateQp(caller->id.get(), caller->pd.get(), &attr), 0);
    rdma_conn_param param = FakePair::Params();
    param.private_data = text.data();
    param.private_data_len = static_cast<uint8_t>(text.size());
    ASSERT_EQ(verbs_.Connect(caller->id.get(), &param), 0);
    DrainLoop();
  }
  void End(Caller* caller) {
    channel_->Forget(caller->id.get());
    verbs_.DestroyQp(caller->id.get());
    caller->id.Reset();
  }

  FakeVerbs verbs_;
  std::shared_ptr<CmChannel> channel_;
  CmId listener_;
};

TEST_F(CmChannelTest, EachIdentifierHasItsHandler) {
  auto one = std::make_shared<Handler>();
  auto other = std::make_shared<Handler>();
  const CmId first = NewId(one);
  const CmId second = NewId(other);
  Resolve(first);
  ASSERT_EQ(one->events.size(), 1u);
  EXPECT_EQ(one->events[0].type, RDMA_CM_EVENT_ADDR_RESOLVED);
  EXPECT_TRUE(other->events.empty());
  Resolve(second);
  EXPECT_EQ(one->events.size(), 1u);
  EXPECT_EQ(other->events.size(), 1u);
}

TEST_F(CmChannelTest, LaterRouteReplacesTheEarlier) {
  auto one = std::make_shared<Handler>();
  auto other = std::make_shared<Handler>();
  const CmId id = NewId(one);
  channel_->SetHandler(id.get(), other);
  Resolve(id);
  EXPECT_TRUE(one->events.empty());
  EXPECT_EQ(other->events.size(), 1u);
}

TEST_F(CmChannelTest, EventsForNobodyAreAcknowledgedAndDropped) {
  auto gone = std::make_shared<Handler>();
  auto forgotten = std::make_shared<Handler>();
  const CmId orphan = NewId(gone);
  const CmId loose = NewId(forgotten);
  gone.reset();
  channel_->Forget(loose.get());
  Resolve(orphan);
  Resolve(loose);
  EXPECT_TRUE(forgotten->events.empty());
  // The destructors destroy both identifiers here. They must not block.
}

TEST_F(CmChannelTest, HandlerMayEndItsIdentifier) {
  auto handler = std::make_shared<Handler>();
  CmId id = NewId(handler);
  handler->on_event = [&] {
    channel_->Forget(id.get());
    id.Reset();
  };
  Resolve(id);
  EXPECT_EQ(handler->events.size(), 1u);
  EXPECT_FALSE(id);
}

TEST_F(CmChannelTest, RequestCarriesItsDataAndItsIdentifier) {
  auto handler = std::make_shared<Handler>();
  ListenWith(handler);
  auto client = std::make_shared<Handler>();
  Caller caller{NewId(client), {}, {}, {}};
  Resolve(caller.id);
  Request(&caller, "who I am");
  ASSERT_EQ(handler->events.size(), 1u);
  const CmEvent& request = handler->events[0];
  EXPECT_EQ(request.type, RDMA_CM_EVENT_CONNECT_REQUEST);
  EXPECT_EQ(request.private_data.substr(0, 9), std::string("who I am\0", 9));
  EXPECT_EQ(request.qp_number, caller.id->qp->qp_num);
  EXPECT_EQ(request.responder_resources, 16);
  EXPECT_EQ(request.initiator_depth, 16);
  ASSERT_TRUE(request.request);
  EXPECT_NE(request.request->verbs, nullptr);
  handler->events.clear();
  End(&caller);
}

TEST_F(CmChannelTest, RequestThatNobodyTakesIsRefused) {
  auto handler = std::make_shared<Handler>();
  ListenWith(handler);
  handler.reset();
  auto client = std::make_shared<Handler>();
  Caller caller{NewId(client), {}, {}, {}};
  Resolve(caller.id);
  Request(&caller, "who I am");
  ASSERT_FALSE(client->events.empty());
  EXPECT_EQ(client->events.back().type, RDMA_CM_EVENT_REJECTED);
  End(&caller);
}

TEST_F(CmChannelTest, EventThatCannotBeReadNowIsReadLater) {
  auto handler = std::make_shared<Handler>();
  const CmId id = NewId(handler);
  verbs_.FailNext(Call::kGetCmEvent, EINTR);
  Resolve(id);
  EXPECT_EQ(handler->events.size(), 1u);
}

TEST_F(CmChannelTest, ChannelThatCannotBeOpenedIsAnError) {
  progress::EventLoop* const loop = progress::EventLoop::Get().value();
  verbs_.FailNext(Call::kCreateEventChannel, EMFILE);
  const absl::Status status = CmChannel::Create(&verbs_, loop).status();
  EXPECT_NE(status.message().find("connection manager"),
            absl::string_view::npos)
      << status;
  verbs_.FailNext(Call::kCreateEventChannel, ENODEV);
  EXPECT_EQ(CmChannel::Create(&verbs_, loop).status(),
            absl::NotFoundError("no RDMA device on this host"));
  verbs_.FailNext(Call::kCreateId, EMFILE);
  EXPECT_FALSE(channel_->NewId().ok());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
