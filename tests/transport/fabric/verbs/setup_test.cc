// Tests connections that are made, refused and abandoned.

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/verbs_pair.h"
#include "tests/transport/fabric/verbs/drain_loop.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "tests/transport/fabric/verbs/raw_peer.h"
#include "transport/fabric/verbs/formats/private_data.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

Options Patient(absl::Duration limit) {
  Options options;
  options.setup_timeout = limit;
  return options;
}

Terms SomeTerms() {
  Terms terms;
  terms.receives = 16;
  terms.reads = 16;
  return terms;
}

class SetupTest : public testing::Test {
 protected:
  void Open(const Options& options = {}, const NetworkOptions& network = {}) {
    ends_ = std::make_unique<Ends>(DeviceOptions(), options, network);
  }
  void SetUp() override { Open(); }
  void TearDown() override { EXPECT_TRUE(api()->misuse().empty()); }

  FakeVerbs* api() { return ends_->api; }
  // Returns the offer of the listening side. Both sides have tried their
  // devices by then.
  std::string Offer() {
    (void)ends_->connecting->Offer();
    return ends_->listening->Offer().value();
  }
  std::unique_ptr<RawPeer> NewPeer() {
    auto peer = std::make_unique<RawPeer>(api(), api()->context("client"));
    peer->Prepare(Offer());
    return peer;
  }
  // Returns the status of a connect to `offer`.
  absl::Status Connect(const std::string& offer,
                       const std::string& token = kTestToken) {
    Outcome outcome;
    auto pending = ends_->connecting->Connect(offer, token, outcome.callback());
    return outcome.Take().status();
  }

  std::unique_ptr<Ends> ends_;
};

TEST_F(SetupTest, WrongTokenIsRefusedAndUsesNothingUp) {
  Outcome accepted;
  auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
  EXPECT_EQ(Connect(Offer(), "another token").code(),
            absl::StatusCode::kPermissionDenied);
  DrainLoop();
  EXPECT_EQ(ends_->CountOfConnections(), 0);
  EXPECT_TRUE(Connect(Offer()).ok());
  EXPECT_TRUE(accepted.Take().ok());
}

TEST_F(SetupTest, TokenWorksOnce) {
  Outcome accepted;
  auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
  EXPECT_TRUE(Connect(Offer()).ok());
  EXPECT_EQ(Connect(Offer()).code(), absl::StatusCode::kPermissionDenied);
}

TEST_F(SetupTest, EmptyTokensAreRefused) {
  Outcome accepted;
  auto listen = ends_->listening->Listen("", accepted.callback());
  EXPECT_EQ(accepted.Take().status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Connect(Offer(), "").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SetupTest, ListeningTwiceForOneTokenIsAnError) {
  Outcome first, second;
  auto listen = ends_->listening->Listen(kTestToken, first.callback());
  auto again = ends_->listening->Listen(kTestToken, second.callback());
  EXPECT_EQ(second.Take().status().code(), absl::StatusCode::kAlreadyExists);
  again.reset();
  EXPECT_TRUE(Connect(Offer()).ok()) << "the first still waits";
  EXPECT_TRUE(first.Take().ok());
}

TEST_F(SetupTest, CancelledTokenMayBeWaitedForAgain) {
  Outcome first, second;
  auto listen = ends_->listening->Listen(kTestToken, first.callback());
  listen.reset();
  auto again = ends_->listening->Listen(kTestToken, second.callback());
  EXPECT_TRUE(Connect(Offer()).ok());
  EXPECT_TRUE(second.Take().ok());
}

TEST_F(SetupTest, OverheardRequestIsOfNoUseToAnotherQueuePair) {
  Outcome accepted;
  auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
  auto peer = NewPeer();
  const std::string overheard =
      MakeRequest(SomeTerms(), kTestToken, peer->qp_number() + 1);
  EXPECT_EQ(peer->Call(overheard), RDMA_CM_EVENT_REJECTED);
  EXPECT_TRUE(Connect(Offer()).ok()) << "the token is still waited for";
}

TEST_F(SetupTest, GarbageIsRefused) {
  Outcome accepted;
  auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
  const std::string request = MakeRequest(SomeTerms(), kTestToken, 1);
  for (const std::string& garbage :
       {std::string(), std::string("GET / HTTP/1.1"), std::string(56, '\xff'),
        request.substr(0, 30), std::string(4, 'x') + request.substr(4)}) {
    auto peer = NewPeer();
    EXPECT_EQ(peer->Call(garbage), RDMA_CM_EVENT_REJECTED);
    EXPECT_LE(api()->counts().qps, 1) << "its own; none was made for it";
  }
  EXPECT_TRUE(Connect(Offer()).ok());
}

// Tests peers that know a token and send a request, but never confirm that they
// are ready.
TEST_F(SetupTest, HalfOpenConnectionsAreBounded) {
  Options options = Patient(absl::Milliseconds(300));
  options.max_half_open = 3;
  Open(options);
  std::vector<Outcome> outcomes(5);
  std::vector<std::unique_ptr<PendingConnect>> listens;
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 5; ++i) {
    listens.push_back(ends_->listening->Listen(absl::StrCat("token ", i),
                                               outcomes[i].callback()));
    peers.push_back(NewPeer());
  }
  api()->Hold();
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(peers[i]->CallProperly(absl::StrCat("token ", i)), -1);
  }
  // Delivers the requests. The answers to them wait in the network.
  for (int i = 0; i < 5; ++i) {
    api()->Step();
    DrainLoop();
  }
  EXPECT_EQ(api()->counts().qps, 5 + 3);
  for (Outcome& outcome : outcomes) {
    EXPECT_EQ(outcome.Take().status().code(),
              absl::StatusCode::kDeadlineExceeded);
  }
  EXPECT_TRUE(ends_->ExchangeUntil([this] { return api()->counts().qps == 5; }))
      << "more than the callers' own";
  api()->Release();
  peers.clear();
  EXPECT_TRUE(ends_->Connect().ok()) << "there is room again";
}

TEST_F(SetupTest, NobodyWhoComesInTimeIsATimeout) {
  Open(Patient(absl::Milliseconds(50)));
  Outcome accepted;
  auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
  EXPECT_EQ(accepted.Take().status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Connect(Offer()).code(), absl::StatusCode::kPermissionDenied)
      << "and the token is forgotten";
}

TEST_F(SetupTest, SilenceIsATimeoutThatNamesThePort) {
  Open(Patient(absl::Milliseconds(50)));
  const std::string offer = Offer();
  api()->CutLink("client", "server");
  const absl::Status status = Connect(offer);
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_TRUE(absl::StrContains(status.message(), "4791")) << status;
  DrainLoop();
  EXPECT_EQ(ends_->CountOfConnections(), 0);
}

TEST_F(SetupTest, NobodyThereIsAnError) {
  const absl::Status status = Connect("10.0.0.2 9");
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(absl::StrContains(status.message(), "nobody listens")) << status;
  EXPECT_EQ(Connect("10.0.0.77 9").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Connect("fd00::77 9").code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Connect("rubbish").code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(SetupTest, SilentHostIsAnError) {
  NetworkOptions network;
  network.silent_hosts = true;
  Open(Options(), network);
  EXPECT_EQ(Connect("10.0.0.2 9").code(), absl::StatusCode::kUnavailable);
}

TEST_F(SetupTest, NextAddressIsTriedAfterADeadOne) {
  for (const char* dead : {"10.0.0.77 9\n", "10.0.0.2 9\n", "fd00::1 9\n"}) {
    Outcome accepted;
    auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
    EXPECT_TRUE(Connect(dead + Offer()).ok()) << dead;
    EXPECT_TRUE(accepted.Take().ok()) << dead;
  }
}

// Tests a listener whose answer shows that it does not know the token.
TEST_F(SetupTest, AnswerWithoutProofIsRefused) {
  rdma_event_channel* const events = api()->CreateEventChannel();
  rdma_cm_id* listener = nullptr;
  ASSERT_EQ(api()->CreateId(events, &listener, nullptr, RDMA_PS_TCP), 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(4242);
  at.sin_addr.s_addr = htonl(0x0a000002);
  ASSERT_EQ(api()->BindAddr(listener, reinterpret_cast<sockaddr*>(&at)), 0);
  ASSERT_EQ(api()->Listen(listener, 0), 0);
  Outcome outcome;
  auto pending = ends_->connecting->Connect("10.0.0.2 4242", kTestToken,
                                            outcome.callback());
  DrainLoop(10);
  rdma_cm_event* event = nullptr;
  ASSERT_EQ(api()->GetCmEvent(events, &event), 0);
  rdma_cm_id* const id = event->id;
  const uint32_t client_qp = event->param.conn.qp_num;
  api()->AckCmEvent(event);
  ibv_pd* const pd = api()->AllocPd(id->verbs);
  ibv_cq* const cq = api()->CreateCq(id->verbs, 8, nullptr, nullptr, 0);
  ibv_qp_init_attr attr = {};
  attr.send_cq = attr.recv_cq = cq;
  attr.qp_type = IBV_QPT_RC;
  ASSERT_EQ(api()->CreateQp(id, pd, &attr), 0);
  const std::string answer =
      MakeAnswer(SomeTerms(), "another token", client_qp, id->qp->qp_num);
  rdma_conn_param param = {};
  param.private_data = answer.data();
  param.private_data_len = static_cast<uint8_t>(answer.size());
  ASSERT_EQ(api()->Accept(id, &param), 0);
  EXPECT_EQ(outcome.Take().status().code(),
            absl::StatusCode::kPermissionDenied);
  DrainLoop();
  api()->DestroyQp(id);
  api()->DestroyId(id);
  api()->DestroyCq(cq);
  api()->DeallocPd(pd);
  api()->DestroyId(listener);
  api()->DestroyEventChannel(events);
}

// The side that cancels, or both sides.
enum class Who { kConnecting, kListening, kBoth };

class Cancelled : public SetupTest, public testing::WithParamInterface<Who> {
 protected:
  // Connects, and cancels after `steps` steps of the network. Returns false if
  // the connection needed fewer steps.
  bool CancelAfter(int steps) {
    Open();
    const std::string offer = Offer();
    api()->Hold();
    {
      Outcome accepted, connected;
      auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
      auto connect =
          ends_->connecting->Connect(offer, kTestToken, connected.callback());
      DrainLoop();
      for (int i = 0; i < steps; ++i) {
        if (!api()->Step()) return false;
        DrainLoop();
      }
      if (GetParam() != Who::kListening) connect.reset();
      if (GetParam() != Who::kConnecting) listen.reset();
      api()->Release();
      DrainLoop();
    }
    DrainLoop();
    return true;
  }
};

TEST_P(Cancelled, AtEachStepLeavesNothing) {
  int steps = 0;
  for (; CancelAfter(steps); ++steps) {
    SCOPED_TRACE(absl::StrCat("after ", steps, " steps"));
    ASSERT_LT(steps, 20);
    EXPECT_EQ(ends_->CountOfConnections(), 0);
    EXPECT_TRUE(api()->misuse().empty()) << api()->misuse()[0];
    EXPECT_TRUE(ends_->Connect().ok()) << "nothing stands in the way";
    if (HasFailure()) return;
  }
  EXPECT_GE(steps, 5) << "address, route, request, answer, ready";
}

INSTANTIATE_TEST_SUITE_P(Side, Cancelled,
                         testing::Values(Who::kConnecting, Who::kListening,
                                         Who::kBoth));

TEST_F(SetupTest, FabricMayGoBeforeWhatItMade) {
  ASSERT_TRUE(ends_->Connect().ok());
  ends_->listening.reset();
  ends_->connecting.reset();
  ASSERT_TRUE(Ends::Send(ends_->client, "x"));
  ends_->Exchange();
  EXPECT_EQ(ends_->server.events.packets.size(), 1u);
  ends_->Close();
  EXPECT_EQ(api()->counts().objects(), 0);
}

TEST_F(SetupTest, FabricThatGoesWithAttemptsUnderWayGivesAllBack) {
  const std::string offer = Offer();
  api()->Hold();
  Outcome accepted, connected;
  auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
  auto connect =
      ends_->connecting->Connect(offer, kTestToken, connected.callback());
  DrainLoop();
  ends_->listening.reset();
  ends_->connecting.reset();
  connect.reset();
  listen.reset();
  api()->Release();
  DrainLoop();
  EXPECT_EQ(api()->counts().objects(), 0);
}

TEST_F(SetupTest, OfferSaysWhyThereIsNone) {
  Options options;
  options.device = "mlx5_0";
  options.addresses = {"10.0.0.1"};
  VerbsFabric fabric(options, api());
  EXPECT_EQ(fabric.Offer().status().code(), absl::StatusCode::kNotFound);
  Outcome accepted, connected;
  auto listen = fabric.Listen(kTestToken, accepted.callback());
  auto connect = fabric.Connect(Offer(), kTestToken, connected.callback());
  EXPECT_EQ(accepted.Take().status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(connected.Take().status().code(), absl::StatusCode::kNotFound);
}

TEST_F(SetupTest, TooLittleLockedMemoryIsSaidAtOnce) {
  Options options;
  options.locked_bytes = 64 << 10;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  const absl::Status status = ends_->listening->Offer().status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "LimitMEMLOCK")) << status;
  EXPECT_EQ(api()->counts().objects(), 0);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
