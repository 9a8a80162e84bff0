// Tests on which path the two sides agree, and the reason that they report if
// there is no better path.

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/hello.h"

namespace penstock {
namespace session {
namespace {

class NegotiationTest : public SessionTest {
 protected:
  static wire::FabricOffer Offer(const std::string& fabric, bool usable,
                                 const std::string& data) {
    wire::FabricOffer offer;
    offer.fabric = fabric;
    offer.usable = usable;
    offer.data = data;
    return offer;
  }
};

TEST_F(NegotiationTest, LifelineIsReportedWhereNothingIsOffered) {
  client_config_.offers.clear();
  server_config_.offers.clear();
  Begin();
  Run();
  for (Peer* peer : {client_.get(), server_.get()}) {
    EXPECT_EQ(peer->Take(),
              Lines{"path tcp (fake) no other fabric is enabled here"});
  }
}

TEST_F(NegotiationTest, ReasonsOfBothSidesAreTold) {
  client_config_.offers = {Offer("rdma", false, "no device"),
                           Offer("shm", true, "x")};
  server_config_.offers = {Offer("shm", false, "no /proc")};
  Begin();
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path tcp (fake) rdma: no device; shm: at "
                                   "the peer: no /proc"});
  EXPECT_EQ(server_->Take(), Lines{"path tcp (fake) shm: no /proc"});
}

TEST_F(NegotiationTest, NothingIsReportedBeforeTheHello) {
  client_config_.offers.clear();
  Begin();
  EXPECT_EQ(client_->Take(), Lines{});
  EXPECT_EQ(server_->Take(), Lines{});
}

TEST_F(NegotiationTest, NextFabricIsTriedWhenOneFails) {
  client_config_.offers = {Offer("rdma", true, "c1"), Offer("shm", true, "c2")};
  server_config_.offers = {Offer("shm", true, "s2"), Offer("rdma", true, "s1")};
  Begin();
  Run();
  EXPECT_EQ(client_->Take(), Lines{"connect rdma to s1 with 0123456789abcdef"});
  (*client_)->path().OnFailure("shm", absl::UnavailableError("refused"));
  EXPECT_EQ(client_->Take(), Lines{"connect shm to s2 with 0123456789abcdef"});
  NewLink();
  AddPath(kClient);
  AddPath(kServer);
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path shm (fake) "});
  EXPECT_EQ(server_->Take(), Lines{"path shm (fake) "});
}

TEST_F(NegotiationTest, LastFailureSettlesBothSidesOnTheLifeline) {
  Open();
  (*client_)->path().OnFailure("shm", absl::UnavailableError("refused"));
  EXPECT_EQ(client_->Take(), Lines{});  // the client tells the server first
  Run();
  EXPECT_EQ(server_->Take(),
            Lines{"path tcp (fake) the peer says: shm: refused"});
  EXPECT_EQ(client_->Take(), Lines{"path tcp (fake) shm: refused"});
}

TEST_F(NegotiationTest, ItLastsUntilBothSidesHaveAgreed) {
  Begin();
  // Expects that the negotiation has not begun, so that the time limit for the
  // hello still applies.
  EXPECT_FALSE((*client_)->path().negotiates());
  Run();
  EXPECT_TRUE((*client_)->path().negotiates());
  EXPECT_TRUE((*server_)->path().negotiates());
  (*client_)->path().OnFailure("shm", absl::UnavailableError("refused"));
  EXPECT_TRUE((*client_)->path().negotiates());
  Run();
  EXPECT_FALSE((*client_)->path().negotiates());
  EXPECT_FALSE((*server_)->path().negotiates());
}

TEST_F(NegotiationTest, ItEndsWithAPathInUse) {
  Open();
  NewLink();
  AddPath(kClient);
  EXPECT_TRUE((*client_)->path().negotiates());
  AddPath(kServer);
  Run();
  EXPECT_FALSE((*client_)->path().negotiates());
  EXPECT_FALSE((*server_)->path().negotiates());
}

TEST_F(NegotiationTest, ServerThatWaitedInVainSettlesBothSides) {
  Open();
  (*server_)->path().OnFailure("shm",
                               absl::DeadlineExceededError("nobody came"));
  Run();
  EXPECT_EQ(server_->Take(), Lines{"path tcp (fake) shm: nobody came"});
  EXPECT_EQ(client_->Take(),
            Lines{"path tcp (fake) shm: the peer says: shm: nobody came"});
}

TEST_F(NegotiationTest, ServerGoesOnWaitingWhereAnotherFabricMayStillCome) {
  client_config_.offers = {Offer("shm", true, "c1"), Offer("rdma", true, "c2")};
  server_config_.offers = {Offer("shm", true, "s1"), Offer("rdma", true, "s2")};
  Begin();
  Run();
  (*server_)->path().OnFailure("shm",
                               absl::DeadlineExceededError("nobody came"));
  (*client_)->path().OnFailure("shm", absl::UnavailableError("refused"));
  Run();
  EXPECT_EQ(server_->Take(), Lines{});
  client_->Take();
  NewLink();
  AddPath(kClient, "rdma");
  AddPath(kServer, "rdma");
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path rdma (fake) "});
  EXPECT_EQ(server_->Take(), Lines{"path rdma (fake) "});
}

TEST_F(NegotiationTest, ServerThatWaitedInVainOnAllFabricsSettlesBothSides) {
  client_config_.offers = {Offer("shm", true, "c1"), Offer("rdma", true, "c2")};
  server_config_.offers = {Offer("shm", true, "s1"), Offer("rdma", true, "s2")};
  Begin();
  Run();
  for (const char* fabric : {"shm", "shm", "rdma"}) {
    EXPECT_EQ(server_->Take(), Lines{});
    (*server_)->path().OnFailure(fabric,
                                 absl::DeadlineExceededError("nobody came"));
  }
  Run();
  EXPECT_EQ(server_->Take(),
            Lines{"path tcp (fake) shm: nobody came; rdma: nobody came"});
}

TEST_F(NegotiationTest, VainWaitOnWhatThePeerDoesNotOfferIsIgnored) {
  server_config_.offers = {Offer("rdma", true, "s1"), Offer("shm", true, "s2")};
  Begin();
  (*server_)->path().OnFailure("rdma",
                               absl::DeadlineExceededError("nobody came"));
  Run();
  EXPECT_EQ(server_->Take(), Lines{});
  NewLink();
  AddPath(kClient);
  AddPath(kServer);
  Run();
  EXPECT_EQ(server_->Take(), Lines{"path shm (fake) "});
}

TEST_F(NegotiationTest, BothSidesMaySettleAtOnceAndHearEachOthersReason) {
  Open();
  (*server_)->path().OnFailure("shm",
                               absl::DeadlineExceededError("nobody came"));
  (*client_)->path().OnFailure("shm", absl::UnavailableError("refused"));
  Run();
  EXPECT_EQ(server_->Take(), Lines{"path tcp (fake) shm: nobody came; "
                                   "the peer says: shm: refused"});
  EXPECT_EQ(client_->Take(), Lines{"path tcp (fake) shm: refused; "
                                   "shm: the peer says: shm: nobody came"});
}

TEST_F(NegotiationTest, SettledServerIgnoresFailures) {
  Open();
  (*client_)->path().OnFailure("shm", absl::UnavailableError("refused"));
  Run();
  server_->Take();
  (*server_)->path().OnFailure("shm",
                               absl::DeadlineExceededError("nobody came"));
  Run();
  EXPECT_EQ(server_->Take(), Lines{});
  EXPECT_EQ((*server_)->path().Describe().reason,
            "the peer says: shm: refused");
}

TEST_F(NegotiationTest, FailureAtAServerThatHasAPathIsIgnored) {
  OpenWithPath();
  (*server_)->path().OnFailure("shm",
                               absl::DeadlineExceededError("nobody came"));
  Run();
  EXPECT_EQ(server_->Take(), Lines{});
  EXPECT_EQ((*server_)->path().Describe().reason, "");
}

TEST_F(NegotiationTest, FailureAtAServerWithoutACommonFabricIsIgnored) {
  client_config_.offers.clear();
  Begin();
  Run();
  EXPECT_EQ(server_->Take(),
            Lines{"path tcp (fake) shm: the peer does not offer it"});
  (*server_)->path().OnFailure("shm",
                               absl::DeadlineExceededError("nobody came"));
  Run();
  EXPECT_EQ(server_->Take(), Lines{});
}

TEST_F(NegotiationTest, FailureBeforeTheHelloSettlesBothSides) {
  Begin();
  (*server_)->path().OnFailure("shm", absl::UnavailableError("no room"));
  Run();
  EXPECT_EQ(server_->Take(), Lines{"path tcp (fake) shm: no room"});
  EXPECT_EQ(client_->Take(),
            (Lines{"connect shm to server's with 0123456789abcdef",
                   "path tcp (fake) shm: the peer says: shm: no room"}));
}

TEST_F(NegotiationTest, FailureBeforeAHelloThatOffersNothingIsReportedOnce) {
  client_config_.offers.clear();
  Begin();
  (*server_)->path().OnFailure("shm", absl::UnavailableError("no room"));
  Run();
  EXPECT_EQ(client_->Take().size(), 1u);
  EXPECT_EQ(server_->Take().size(), 1u);
}

TEST_F(NegotiationTest, PathThatBreaksBeforeItIsUsedSettlesBothSides) {
  Open();
  NewLink();
  AddPath(kClient);
  Run();
  fast().Drop(absl::UnavailableError("cut"));
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path tcp (fake) shm: lost: cut"});
  EXPECT_EQ(server_->Take(),
            Lines{"path tcp (fake) the peer says: shm: lost: cut"});
}

TEST_F(NegotiationTest, PathForAnAttemptThatIsOverIsNotTaken) {
  Open();
  (*server_)->path().OnFailure("shm",
                               absl::DeadlineExceededError("nobody came"));
  NewLink();
  AddPath(kClient);
  AddPath(kServer);  // too late: the server has dropped its end
  Run();
  EXPECT_EQ((*client_)->path().endpoint(), nullptr);
  EXPECT_EQ((*server_)->path().endpoint(), nullptr);
  ASSERT_EQ(client_->Take().size(), 1u);
  EXPECT_EQ(server_->Take(), Lines{"path tcp (fake) shm: nobody came"});
}

TEST_F(NegotiationTest, OwnerMayAnswerWithinTheEvent) {
  Begin();
  client_->on_event = [this] {
    client_->on_event = nullptr;
    (*client_)->path().OnFailure("shm", absl::UnavailableError("at once"));
  };
  Run();
  EXPECT_EQ(client_->Take(),
            (Lines{"connect shm to server's with 0123456789abcdef",
                   "path tcp (fake) shm: at once"}));
}

TEST_F(NegotiationTest, OwnerMayCloseBecauseOfThePath) {
  Open();
  client_->on_event = [this] {
    client_->on_event = nullptr;
    (*client_)->Close(absl::UnavailableError("policy"));
  };
  (*client_)->path().OnFailure("shm", absl::UnavailableError("refused"));
  Run();
  EXPECT_EQ(client_->Take(), (Lines{"path tcp (fake) shm: refused",
                                    "closed UNAVAILABLE: policy"}));
}

}  // namespace
}  // namespace session
}  // namespace penstock
