// Tests the log lines that a peer can cause.

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/shm_peer.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

// A forged log line and terminal control codes.
constexpr char kForged[] =
    "\r\n2026-01-01T00:00:00.000 error FORGED\x1b[2J\x07";

void ExpectNoForgedLine(const std::string& text) {
  EXPECT_FALSE(
      absl::StrContains(text, "\n2026-01-01T00:00:00.000 error FORGED"))
      << text;
  for (char c : text) {
    EXPECT_TRUE(c == '\n' || (static_cast<unsigned char>(c) >= ' ' &&
                              static_cast<unsigned char>(c) < 0x7f))
        << "control character " << int{c};
    if (::testing::Test::HasFailure()) return;
  }
}

// Sends each text by which a peer can give a reason.
void SayOddReasons(Victim* victim) {
  Hello unusable;
  unusable.offers = {{false, "shm", kForged}};
  victim->NewSession(unusable)->Finish();
  unusable.offers = {{false, std::string(kForged).substr(0, 15), "reason"}};
  victim->NewSession(unusable)->Finish();

  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  peer->Send(FrameOf(type::kPathLost, 0, kForged, 1));
  peer->Finish();

  peer = victim->NewSession();
  peer->Send(FrameOf(type::kGoaway, UINT32_MAX, kForged, 14));
  peer->Send(FrameOf(type::kReset, 1, kForged, 14));
  peer->Finish();
  // Sends metadata that the victim's refusal may quote.
  peer = victim->NewSession();
  peer->OpenStream(absl::StrCat(RequestMetadata("/victim/Echo"),
                                Literal(kForged, kForged),
                                Known(key::kTimeout, kForged)));
  peer->Finish();
  ExpectNoForgedLine(victim->Log());
}

// Sends odd error texts to a client, which passes the texts to its application.
void SayOddReasonsToClient(Victim* victim) {
  Hello unusable;
  unusable.offers = {{false, "shm", kForged}};
  std::unique_ptr<Peer> first = victim->NewSession(unusable);
  first->Await(type::kHeaders);
  victim->AwaitCalls();
  first->Finish();
  std::unique_ptr<Peer> second = victim->NewSession(ShmHello());
  second->Send(FrameOf(type::kPathLost, 0, kForged, 1));
  second->Await(type::kHeaders);
  victim->AwaitCalls();
  second->Send(FrameOf(type::kGoaway, UINT32_MAX, kForged, 14));
  second->Finish();
  ExpectNoForgedLine(victim->Log());
  for (const std::string& line : victim->paths()) {
    EXPECT_TRUE(absl::StartsWith(line, "path ")) << line;
    ExpectNoForgedLine(line);
  }
}

// Sets up a path and loses it repeatedly, each time for another reason.
void LosePathsForEver(Victim* victim) {
  constexpr uint32_t kCycles = 30000;
  std::unique_ptr<Peer> peer = victim->NewSession(ShmHello());
  peer->reading = Peer::Reading::kDropped;
  const std::string filler(1000, 'r');
  for (uint32_t epoch = 1; epoch < kCycles; ++epoch) {
    peer->Queue(
        FrameOf(type::kPathLost, 0, absl::StrCat(epoch, filler), epoch));
    if (!peer->Queue(FrameOf(type::kPathWanted, 0, "", epoch + 1))) break;
  }
  peer->Flush();
  peer->Finish();
}

// Breaks rules repeatedly. Each session ends with a log line.
void BreakTheRulesForEver(Victim* victim) {
  for (int i = 0; i < 1000; ++i) {
    std::unique_ptr<Peer> peer = victim->NewConnection();
    peer->Negotiate();
    peer->Send(FrameOf(type::kMessage, 1, "no hello"));
    peer->AwaitEnd();
  }
}

const Attack kOnServers[] = {
    {"APeersTextIsEscaped", SayOddReasons},
    {"PathsLostForEverAreNotLoggedForEver", LosePathsForEver},
    {"SessionsThatBreakTheRulesLogALineEach",
     BreakTheRulesForEver,
     {kMemoryPerSession, /*log=*/512 * 1024}},
};

const Attack kOnClients[] = {
    {"APeersTextIsEscaped", SayOddReasonsToClient},
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }
TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Log, AgainstServer, ::testing::ValuesIn(kOnServers),
                         NameOfTest);
INSTANTIATE_TEST_SUITE_P(Log, AgainstClient, ::testing::ValuesIn(kOnClients),
                         NameOfTest);

}  // namespace
}  // namespace penstock::adversary
