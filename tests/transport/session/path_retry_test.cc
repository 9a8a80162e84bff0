// Tests further attempts at a path after the first attempt.

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/raw_peer.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

using wire::FrameType;

constexpr char kSecondToken[] = "fedcba9876543210";

class PathRetryTest : public SessionTest {
 protected:
  // Loses the first path at both sides. Both tell each other.
  void Settle() {
    OpenWithPath();
    fast().Drop();
    Run();
    client_->Take();
    server_->Take();
  }
  // Makes the client ask again. The server then waits for the new path.
  void Retry() {
    (*client_)->path().Retry();
    Run();
    EXPECT_EQ(server_->Take(), Lines{"listen"});
    (*server_)->path().Offer(kSecondToken);
    Run();
    EXPECT_EQ(client_->Take(),
              Lines{"connect shm to server's with fedcba9876543210"});
  }
};

TEST_F(PathRetryTest, LostPathIsReplaced) {
  Settle();
  EXPECT_TRUE((*client_)->path().CanRetry());
  Retry();
  NewLink();
  AddPath(kClient);
  AddPath(kServer);
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path shm (fake) "});
  EXPECT_EQ(server_->Take(), Lines{"path shm (fake) "});
  for (Peer* peer : {client_.get(), server_.get()}) {
    const Counters& counters = (*peer)->counters();
    const int shm = static_cast<int>(metrics::Fabric::kShm);
    EXPECT_EQ(counters.paths_lost[shm], 1u);
    EXPECT_EQ(counters.paths_regained[shm], 1u);
  }
  client_->Open(1);
  client_->Send(1, Letters(5000));
  Run();
  EXPECT_EQ(server_->stream(1).Take().back(), MessageLine(Letters(5000)));
  EXPECT_EQ(fast().counters(kServer).read_bytes, 5000u);
}

TEST_F(PathRetryTest, OnlyASettledClientRetries) {
  Open();
  EXPECT_FALSE((*client_)->path().CanRetry());  // the first attempt is not over
  (*client_)->path().Retry();
  NewLink();
  AddPath(kClient);
  AddPath(kServer);
  Run();
  EXPECT_FALSE((*client_)->path().CanRetry());  // a path exists already
  fast().Drop();
  client_->PollAll();
  EXPECT_FALSE((*client_)->path().CanRetry());  // the server has not answered
  Run();
  EXPECT_TRUE((*client_)->path().CanRetry());
  EXPECT_FALSE((*server_)->path().CanRetry());
  (*client_)->Close(absl::UnavailableError("enough"));
  EXPECT_FALSE((*client_)->path().CanRetry());
}

TEST_F(PathRetryTest, NothingIsRetriedWithoutACommonFabric) {
  server_config_.offers.clear();
  Open();
  EXPECT_FALSE((*client_)->path().CanRetry());
  (*client_)->path().Retry();
  Run();
  EXPECT_EQ((*client_)->path().epoch(), 1u);
  EXPECT_EQ(server_->Take(), Lines{});
}

TEST_F(PathRetryTest, RetryThatFailsLeavesTheLifeline) {
  Settle();
  Retry();
  (*client_)->path().OnFailure("shm", absl::UnavailableError("refused"));
  Run();
  EXPECT_EQ(client_->Take(), Lines{"path tcp (fake) shm: refused"});
  EXPECT_EQ(server_->Take(),
            Lines{"path tcp (fake) the peer says: shm: refused"});
  EXPECT_TRUE((*client_)->path().CanRetry());
}

TEST_F(PathRetryTest, ServerThatCannotListenEndsTheAttempt) {
  Settle();
  (*client_)->path().Retry();
  Run();
  (*server_)->path().OnFailure("shm", absl::UnavailableError("no room"));
  (*server_)->path().Offer(kSecondToken);
  Run();
  EXPECT_EQ(client_->Take(),
            Lines{"path tcp (fake) the peer says: shm: no room"});
  EXPECT_TRUE((*client_)->path().CanRetry());
}

TEST_F(PathRetryTest, PathMayBeQuickerThanTheFramesAboutIt) {
  Settle();
  (*client_)->path().Retry();
  client_->Flush();
  StepAll(lifeline_.get(), kServer);
  NewLink();
  AddPath(kServer);
  (*server_)->path().Offer(kSecondToken);
  AddPath(kClient);
  Run();
  EXPECT_EQ((*client_)->path().Describe().fabric, "shm");
  EXPECT_EQ((*server_)->path().Describe().fabric, "shm");
}

class LateAnnouncementTest : public PathRetryTest {
 protected:
  // Allows the lifeline one packet in flight. The session then repeats the lost
  // path's frames one by one, after the frames about the next path.
  LateAnnouncementTest() { lifeline_options_.credits = 1; }

  void StepLifelineUntil(const std::function<bool()>& done) {
    for (int i = 0; i < 1000 && !done(); ++i) {
      Step(lifeline_.get(), i % 2 == 0 ? kServer : kClient);
    }
    EXPECT_TRUE(done());
  }
  // Loses the announcement of a message for stream 1 with the path. Many other
  // frames are repeated before it.
  void LosePathWithAnnouncement() {
    OpenWithPath();
    client_->Open(1);
    client_->Open(2);
    Run();
    for (int i = 0; i < 4000; ++i) {
      (*client_)->SendEntry(i, "entry");
      client_->Flush();
    }
    client_->Send(1, Letters(5000, 1));
    client_->Flush();
    fast().Drop();
    client_->PollAll();
  }
  void GetSecondPath() {
    StepLifelineUntil([this] { return (*client_)->path().CanRetry(); });
    (*client_)->path().Retry();
    client_->Flush();
    StepLifelineUntil([this] { return (*server_)->path().epoch() == 2; });
    (*server_)->path().Offer(kSecondToken);
    NewLink();
    AddPath(kServer);
    AddPath(kClient);
    StepLifelineUntil([this] {
      return (*client_)->path().Describe().fabric == "shm" &&
             (*server_)->path().Describe().fabric == "shm";
    });
  }
};

// Tests that a region of a lost path is not read on the next path, where the
// same key means another region.
TEST_F(LateAnnouncementTest, NamesThePathItWasMadeFor) {
  for (bool can_load : {false, true}) {
    fast_links_.clear();
    fast_options_.can_load = can_load;
    LosePathWithAnnouncement();
    GetSecondPath();
    EXPECT_EQ(server_->stream(1).Take(), Lines{"headers open"});
    client_->Send(2, Letters(6000, 2));
    Run();
    EXPECT_EQ(server_->stream(1).Take(), Lines{MessageLine(Letters(5000, 1))});
    EXPECT_EQ(server_->stream(2).Take().back(), MessageLine(Letters(6000, 2)));
  }
}

TEST_F(RawPeerTest, FramesOfAnEarlierAttemptAreIgnored) {
  Open();
  SendPathFrame(FrameType::kPathLost, 1);
  SendPathFrame(FrameType::kPathWanted, 2);
  SendPathFrame(FrameType::kPathLost, 1);
  SendPathFrame(FrameType::kPathReady, 1);
  Run();
  EXPECT_EQ(peer_->Take(),
            (Lines{"path tcp (fake) the peer says: why", "listen"}));
  (*peer_)->path().Add("shm", fast_.Take(Side::kB));
  Run();
  EXPECT_EQ(peer_->Take(), Lines{});  // the peer is not ready for this path
  SendPathFrame(FrameType::kPathReady, 2);
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"path shm (fake) "});
}

TEST_F(RawPeerTest, FramesOfALaterAttemptEndTheSession) {
  for (FrameType type : {FrameType::kPathReady, FrameType::kPathLost}) {
    Link lifeline(LifelineOptions());
    Peer peer(ServerConfig(), lifeline.Take(Side::kB));
    RawPeer raw(lifeline.Take(Side::kA));
    peer->Start();
    raw.SendHello();
    raw.Send(Header(type, 0, 2), "x");
    lifeline.StepAll();
    EXPECT_EQ(peer.Take(),
              Lines{"closed INVALID_ARGUMENT: the peer names a path "
                    "that was not requested yet"});
  }
}

TEST_F(RawPeerTest, PathThatIsWantedOutOfTurnEndsTheSession) {
  Open();
  SendPathFrame(FrameType::kPathWanted, 2);
  Run();
  EXPECT_EQ(peer_->Take(), Lines{"closed INVALID_ARGUMENT: the peer "
                                 "requested a path out of turn"});
}

TEST_F(RawPeerTest, ServerMayNotWantAPath) {
  Open(ClientConfig());
  SendPathFrame(FrameType::kPathWanted, 2);
  Run();
  EXPECT_EQ(peer_->Take(),
            Lines{"closed INVALID_ARGUMENT: a server asked for a path"});
}

TEST_F(RawPeerTest, OfferWithoutATokenEndsTheSession) {
  Open(ClientConfig());
  SendPathFrame(FrameType::kPathOffered, 1, "short");
  Run();
  EXPECT_EQ(peer_->Take(),
            Lines{"closed INVALID_ARGUMENT: malformed offer of a path"});
}

TEST_F(RawPeerTest, ClientMayNotOfferAPath) {
  Open();
  SendPathFrame(FrameType::kPathOffered, 1, kSecondToken);
  Run();
  EXPECT_EQ(peer_->Take(),
            Lines{"closed INVALID_ARGUMENT: malformed offer of a path"});
}

}  // namespace
}  // namespace session
}  // namespace penstock
