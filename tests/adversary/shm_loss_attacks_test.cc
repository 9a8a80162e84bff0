// Tests a server that disappears during the set-up of shared memory, or during
// a call over it: after each step, in each way.

#include <string>

#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/shm_session.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

constexpr Moment kMoments[] = {Moment::kGreeted, Moment::kConnected,
                               Moment::kAsked,   Moment::kWelcomed,
                               Moment::kReady,   Moment::kCalled};

// Attacks by `leave`, which ends only the path. The call must continue over the
// lifeline.
void LosePath(Victim* victim, void (*leave)(ShmServer*)) {
  for (Moment moment : kMoments) {
    SCOPED_TRACE(absl::StrCat("moment ", static_cast<int>(moment)));
    ShmServer server(victim, moment);
    leave(&server);
    ExpectCallOverLifeline(victim, server.peer.get());
  }
}

void HangUp(Victim* victim) {
  LosePath(victim, [](ShmServer* server) {
    server->listener.reset();
    server->socket.reset();
  });
}

void SayLost(Victim* victim) {
  LosePath(victim, [](ShmServer* server) {
    server->peer->Send(FrameOf(type::kPathLost, 0, "no more", 1));
  });
}

void HangUpAndSayLost(Victim* victim) {
  LosePath(victim, [](ShmServer* server) {
    server->socket.reset();
    server->peer->Send(FrameOf(type::kPathLost, 0, "no more", 1));
  });
}

// Attacks by `leave`, which ends the session. The victim's call must fail as
// over stock gRPC, or be repeated if it was not sent. The next client must be
// served.
void LoseSession(Victim* victim, void (*leave)(ShmServer*)) {
  for (Moment moment : kMoments) {
    SCOPED_TRACE(absl::StrCat("moment ", static_cast<int>(moment)));
    {
      ShmServer server(victim, moment);
      leave(&server);
    }
    ExpectCall(victim, victim->NewSession().get(), /*may_lose=*/true);
  }
}

void EndTheLifeline(Victim* victim) {
  LoseSession(victim, [](ShmServer* server) {
    EXPECT_TRUE(server->peer->Finish()) << "the session does not end";
  });
}

void ResetTheLifeline(Victim* victim) {
  LoseSession(victim, [](ShmServer* server) { server->peer->Abort(); });
}

// Ends the path, and immediately afterwards the TCP connection.
void LeaveAltogether(Victim* victim) {
  LoseSession(victim, [](ShmServer* server) {
    server->socket.reset();
    server->peer->Abort();
  });
}

const Attack kOnClients[] = {
    {"AnEndOfTheSocketCostsThePathOnly", HangUp},
    {"ALossThatIsSaidCostsThePathOnly", SayLost},
    {"ALossOnBothWaysCostsThePathOnly", HangUpAndSayLost},
    {"AnEndOfTheLifelineCostsItsCallOnly", EndTheLifeline},
    {"AResetOfTheLifelineCostsItsCallOnly", ResetTheLifeline},
    {"AnEndOfAllCostsItsCallOnly", LeaveAltogether},
};

TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(ShmLoss, AgainstClient,
                         ::testing::ValuesIn(kOnClients), NameOfTest);

}  // namespace
}  // namespace penstock::adversary
