// Tests the loss of a fast path at every moment of an exchange. No message may
// be lost.

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

uint64_t LostPathsOf(Peer* peer) {
  uint64_t sum = 0;
  for (const uint64_t lost : (*peer)->counters().paths_lost) sum += lost;
  return sum;
}

TEST_F(SessionTest, LossIsReportedOnceByEachSide) {
  OpenWithPath();
  fast().Drop(absl::UnavailableError("cut"));
  Run();
  EXPECT_EQ(client_->Take().size(), 1u);
  EXPECT_EQ(server_->Take().size(), 1u);
  for (Peer* peer : {client_.get(), server_.get()}) {
    EXPECT_EQ((*peer)->path().Describe().fabric, "tcp");
    EXPECT_EQ((*peer)->path().endpoint(), nullptr);
    EXPECT_EQ(LostPathsOf(peer), 1u);
  }
}

// Tests a path that ends before or after the lifeline. No side may count the
// path as lost.
TEST_F(SessionTest, PathThatEndsWithItsSessionIsNotLost) {
  for (const bool fast_first : {true, false}) {
    for (const Side leaver : {kClient, kServer}) {
      SCOPED_TRACE(absl::StrCat("fast first ", fast_first, ", leaver ",
                                leaver == kClient ? "client" : "server"));
      fast_links_.clear();
      OpenWithPath();
      Peer& stays = peer(leaver == kClient ? kServer : kClient);
      const Side other = leaver == kClient ? kServer : kClient;
      peer(leaver)->Close(absl::UnavailableError("done"));
      peer(leaver).Flush();  // ends the path
      EXPECT_EQ(LostPathsOf(&peer(leaver)), 0u);
      if (fast_first) StepAll(&fast(), other);
      peer(leaver).Destroy();  // ends the lifeline
      StepAll(lifeline_.get(), other);
      StepAll(&fast(), other);
      EXPECT_TRUE(stays->closed());
      EXPECT_EQ(LostPathsOf(&stays), 0u);
    }
  }
}

TEST_F(SessionTest, SideThatSeesTheLossTellsTheOther) {
  OpenWithPath();
  fast().DropOneSide(kClient, absl::UnavailableError("cut"));
  Step(&fast(), kClient);
  EXPECT_EQ(client_->Take(), Lines{});  // waits for the answer of the server
  EXPECT_EQ((*client_)->path().Describe().reason, "shm: lost: cut");
  EXPECT_EQ(LostPathsOf(client_.get()), 0u);
  StepAll(lifeline_.get(), kServer);
  EXPECT_EQ(server_->Take(),
            Lines{"path tcp (fake) the peer says: shm: lost: cut"});
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path tcp (fake) shm: lost: cut"});
  EXPECT_EQ(LostPathsOf(client_.get()), 1u);
  EXPECT_EQ(server_->Take(), Lines{});
}

// Tests a loss that this side detects while sending. No doorbell rings for such
// a loss, and all threads may be asleep. The session must therefore act without
// a poll.
TEST_F(SessionTest, LossThatIsFoundInSendingWaitsForNobodyToPoll) {
  OpenWithPath();
  fast().FailNthSend(kClient, 1);
  client_->Open(1);
  client_->Send(1, "m");
  client_->Flush();
  EXPECT_EQ((*client_)->path().endpoint(), nullptr);
  StepAll(lifeline_.get(), kServer);
  EXPECT_EQ(server_->stream(1).Take(), (Lines{"headers open", "message m"}));
}

TEST_F(RawPeerTest, LossThatThePeerReportsIsAnsweredOnce) {
  Open();
  AddPath();
  for (int i = 0; i < 3; ++i) SendPathFrame(FrameType::kPathLost, 1);
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"path tcp (fake) the peer says: why"});
  EXPECT_EQ(raw_->Take(), Lines{"path lost 1 the peer says: why"});
  EXPECT_EQ(raw_fast_->Take(), Lines{"broken"});
}

// Tests reads of a path that is destroyed with its owner. The path delivers no
// further completions.
TEST_F(SessionTest, ReadsOfAPathThatThePeerLostStartOver) {
  OpenWithPath();
  client_->Open(1);
  client_->Send(1, Letters(9000));
  client_->Flush();
  Step(&fast(), kServer);
  EXPECT_EQ(fast().waiting(kServer), 3u);  // the reads
  fast().DropOneSide(kClient, absl::UnavailableError("cut"));
  Step(&fast(), kClient);
  StepAll(lifeline_.get(), kServer);
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", MessageLine(Letters(9000))}));
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
}

TEST_F(SessionTest, AnnouncementIsReadOverTheLifelineOnceItsPathIsLost) {
  OpenWithPath();
  client_->Open(1);
  client_->Send(1, Letters(9000));
  client_->Flush();
  fast().Drop();
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open", MessageLine(Letters(9000))}));
  EXPECT_EQ(lifeline_->exposed(kClient), 0u);
}

TEST_F(SessionTest, MessageThatOnlyTheLostPathLedToResetsItsStream) {
  OpenWithPath();
  client_->Open(1);
  client_->Open(2);
  lifeline_->FailNthExpose(kClient, 1);
  client_->Send(1, Letters(9000));
  client_->Send(2, "m");
  client_->Flush();
  fast().Drop();
  Run();
  EXPECT_EQ(server_->stream(1).Take(),
            (Lines{"headers open",
                   "reset UNAVAILABLE: a message was lost: no path leads to "
                   "the message"}));
  EXPECT_EQ(client_->stream(1).Take(),
            Lines{"reset UNAVAILABLE: a message was lost: no path leads to the "
                  "message, by the "
                  "peer"});
  EXPECT_EQ(server_->stream(2).Take(), (Lines{"headers open", "message m"}));
}

// The variants of an exchange: which link delivers first, and when and how the
// path is lost.
enum class Order { kLifelineFirst, kFastFirst, kInTurn };
enum class Loss { kBothSides, kClient, kServer, kClientSend, kServerSend };

struct Plan {
  Order order;
  Loss loss;
  int moment;
  bool can_load;
};

class EveryMomentTest : public SessionTest {
 protected:
  void Exchange(const Plan& plan) {
    fast_links_.clear();
    fast_options_.can_load = plan.can_load;
    Open();
    NewLink();
    AddPath(kClient);
    AddPath(kServer);
    const bool fails_a_send =
        plan.loss == Loss::kClientSend || plan.loss == Loss::kServerSend;
    if (fails_a_send) {
      fast().FailNthSend(plan.loss == Loss::kClientSend ? kClient : kServer,
                         plan.moment + 1);
    }
    for (int step = 0; step < kSteps; ++step) {
      if (!fails_a_send && step == plan.moment) Lose(plan.loss);
      if (step % 3 == 0) Act(step / 3);
      StepSomewhere(plan.order, step);
    }
    Run();
    Check();
  }

  static constexpr int kSteps = 40;

 private:
  void Lose(Loss loss) {
    if (loss == Loss::kBothSides) {
      fast().Drop();
    } else {
      fast().DropOneSide(loss == Loss::kClient ? kClient : kServer);
    }
  }

  // Performs the step with number `n`. The first step begins before the path is
  // ready.
  void Act(int n) {
    const std::vector<size_t> sizes{10, 5000, 0, 30000, 1024, 1025};
    if (n == 0) client_->Open(1);
    if (n >= 1 && n <= 6) client_->Send(1, Letters(sizes[n - 1], n));
    if (n == 7) (*client_)->output().SendHalfClose(1);
    if (n == 3) (*server_)->output().SendHeaders(1, Letters(40000));
    if (n >= 4 && n <= 9) server_->Send(1, Letters(sizes[n - 4], n));
    if (n == 10) (*server_)->output().SendTrailers(1, "done");
    FlushBoth();
  }

  void StepSomewhere(Order order, int step) {
    Link* first = order == Order::kLifelineFirst ? lifeline_.get() : &fast();
    Link* second = order == Order::kLifelineFirst ? &fast() : lifeline_.get();
    if (order == Order::kInTurn && step % 2 == 0) std::swap(first, second);
    for (Side side : {kClient, kServer}) {
      if (!Step(first, side)) Step(second, side);
    }
  }

  void Check() {
    const std::vector<size_t> sizes{10, 5000, 0, 30000, 1024, 1025};
    Lines at_server{"headers open"};
    Lines at_client{"headers " + Brief(Letters(40000))};
    for (int n = 1; n <= 6; ++n) {
      at_server.push_back(MessageLine(Letters(sizes[n - 1], n)));
      at_client.push_back(MessageLine(Letters(sizes[n - 1], n + 3)));
    }
    at_server.push_back("half close");
    at_client.push_back("trailers done");
    EXPECT_EQ(server_->stream(1).Take(), at_server);
    EXPECT_EQ(client_->stream(1).Take(), at_client);
    for (Side side : {kClient, kServer}) {
      EXPECT_EQ(lifeline_->exposed(side), 0u);
      EXPECT_EQ(fast().exposed(side), 0u);
      EXPECT_EQ(fast().loans(side), 0);
      EXPECT_EQ(peer(side)->path().endpoint(), nullptr);
      EXPECT_FALSE(peer(side)->closed());
    }
  }
};

TEST_F(EveryMomentTest, NothingIsLostOrRepeated) {
  for (Order order :
       {Order::kLifelineFirst, Order::kFastFirst, Order::kInTurn}) {
    for (Loss loss : {Loss::kBothSides, Loss::kClient, Loss::kServer}) {
      for (int moment = 0; moment < kSteps; ++moment) {
        for (bool can_load : {false, true}) {
          SCOPED_TRACE(absl::StrCat("order ", static_cast<int>(order),
                                    ", loss ", static_cast<int>(loss),
                                    ", moment ", moment, ", load ", can_load));
          Exchange(Plan{order, loss, moment, can_load});
          if (HasFailure()) return;
        }
      }
    }
  }
}

TEST_F(EveryMomentTest, EverySendMayFail) {
  for (Order order :
       {Order::kLifelineFirst, Order::kFastFirst, Order::kInTurn}) {
    for (Loss loss : {Loss::kClientSend, Loss::kServerSend}) {
      for (int moment = 0; moment < 6; ++moment) {
        SCOPED_TRACE(absl::StrCat("order ", static_cast<int>(order), ", loss ",
                                  static_cast<int>(loss), ", moment ", moment));
        Exchange(Plan{order, loss, moment, false});
        if (HasFailure()) return;
      }
    }
  }
}

}  // namespace
}  // namespace session
}  // namespace penstock
