// Tests each type of frame and unit, in each state of a session, with extreme
// values in each field, and random sequences of such frames.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/variants.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

enum class State {
  kNegotiated,  // before the hello
  kGreeted,
  kOpen,        // a stream is open
  kHalfClosed,  // the caller has half-closed
  kEnded,       // the stream has ended
};

constexpr State kStates[] = {State::kNegotiated, State::kGreeted, State::kOpen,
                             State::kHalfClosed, State::kEnded};

struct Session {
  std::unique_ptr<Peer> peer;
  uint32_t stream = 1;
};

// Advances the call to the next state, as its server.
void GoOn(State state, Session* session) {
  Peer* const peer = session->peer.get();
  peer->Send(FrameOf(type::kHeaders, session->stream, ResponseMetadata()));
  if (state != State::kEnded) return;
  peer->Send(
      FrameOf(type::kTrailers, session->stream, Known(key::kGrpcStatus, "0")));
}

Session Reach(Victim* victim, State state) {
  Session session;
  if (state == State::kNegotiated) {
    session.peer = victim->NewNegotiation();
    return session;
  }
  session.peer = victim->NewSession();
  Peer* const peer = session.peer.get();
  if (state == State::kGreeted) return session;
  session.stream = peer->OpenStream(RequestMetadata("/victim/Echo"));
  if (state == State::kOpen) return session;
  if (!peer->is_client()) {
    GoOn(state, &session);
    return session;
  }
  peer->Send(FrameOf(type::kHalfClose, session.stream));
  if (state == State::kEnded) peer->Await(type::kTrailers);
  return session;
}

std::string Shown(const Frame& frame, State state) {
  return absl::StrCat("frame of type ", frame.type, " in state ",
                      static_cast<int>(state), ": ",
                      absl::BytesToHexString(Encode(frame).substr(0, 100)));
}

// Checks that the victim lives. Returns false if the test should stop.
bool IsWell(Victim* victim, const std::string& what) {
  if (victim->process()->IsAlive() && !::testing::Test::HasFailure()) {
    return true;
  }
  ADD_FAILURE() << "by " << what << ": " << victim->process()->Fate();
  return false;
}

// Sends the variants one after another, every `step`th.
void SendEachVariant(Victim* victim, State state, size_t step) {
  size_t count = 0;
  for (uint8_t type : FrameTypes()) {
    for (const Frame& frame : Variants(type, 1, 1)) {
      if (count++ % step != 0) continue;
      Session session = Reach(victim, state);
      Frame sent = frame;
      // Adjusts sequence numbers to the next number of this session.
      if (sent.sequence == uint64_t{1}) {
        sent.sequence = session.peer->sequence_of_next();
      }
      session.peer->Send(sent);
      EXPECT_TRUE(session.peer->Finish()) << "the session does not end";
      if (!IsWell(victim, Shown(sent, state))) return;
    }
  }
}

void SendEachUnit(Victim* victim, State state, size_t step) {
  size_t count = 0;
  for (uint8_t type : UnitTypes()) {
    for (const std::string& unit : UnitVariants(type)) {
      if (count++ % step != 0) continue;
      Session session = Reach(victim, state);
      session.peer->Write(unit);
      EXPECT_TRUE(session.peer->Finish()) << "the session does not end";
      if (!IsWell(victim, absl::BytesToHexString(unit.substr(0, 100)))) return;
    }
  }
}

int Setting(const char* name, int otherwise) {
  const char* const text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

// Sends some frames per session, beginning in random states. ADVERSARY_SEED
// repeats one session, and ADVERSARY_SESSIONS is the number of sessions.
void SendAtRandom(Victim* victim, int sessions) {
  const int first = Setting("ADVERSARY_SEED", 1);
  sessions = Setting("ADVERSARY_SESSIONS", sessions);
  for (int seed = first; seed < first + sessions; ++seed) {
    std::mt19937 random(seed);
    Session session = Reach(victim, kStates[random() % 5]);
    for (int left = random() % 20; left >= 0; --left) {
      const Frame frame = RandomFrame(&random);
      const bool sent = random() % 4 == 0 ? session.peer->SendLong(frame)
                                          : session.peer->Send(frame);
      if (!sent) break;
    }
    if (random() % 4 == 0) {
      session.peer->Abort();
    } else {
      EXPECT_TRUE(session.peer->Finish()) << "the session does not end";
    }
    if (!IsWell(victim, absl::StrCat("seed ", seed))) return;
  }
}

// Sends frames for two seconds. ADVERSARY_SEED repeats them.
void SendNumbersOfAnySize(Victim* victim) {
  const auto seed = static_cast<unsigned>(
      Setting("ADVERSARY_SEED", static_cast<int>(std::random_device()())));
  std::printf("ADVERSARY_SEED=%d repeats this\n", static_cast<int>(seed));
  std::fflush(stdout);
  std::mt19937_64 random(seed);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  while (std::chrono::steady_clock::now() < end) {
    Session session = Reach(victim, State::kOpen);
    for (uint64_t id = 1; id <= 8; ++id) {
      if (!session.peer->Send(FrameOfAnySize(&random, session.stream, id))) {
        break;
      }
    }
    EXPECT_TRUE(session.peer->Finish()) << "the session does not end";
    if (!IsWell(victim, absl::StrCat("seed ", seed))) return;
  }
}

// Returns n if one variant in n must be tried. A client needs a channel for
// each variant, so fewer variants are tried. ADVERSARY_STEP=1 tries all.
size_t StepFor(const Victim& victim) {
  return Setting("ADVERSARY_STEP", victim.is_server() ? 2 : 5);
}

template <State kState>
void SendAll(Victim* victim) {
  SendEachVariant(victim, kState, StepFor(*victim));
}

template <State kState>
void SendAllUnits(Victim* victim) {
  SendEachUnit(victim, kState, StepFor(*victim));
}

const Attack kSweeps[] = {
    {"EachFrameBeforeTheHello", SendAll<State::kNegotiated>},
    {"EachFrameWithoutAStream", SendAll<State::kGreeted>},
    {"EachFrameWithAnOpenStream", SendAll<State::kOpen>},
    {"EachFrameWithAHalfClosedStream", SendAll<State::kHalfClosed>},
    {"EachFrameWithAnEndedStream", SendAll<State::kEnded>},
    {"EachUnitBeforeTheHello", SendAllUnits<State::kNegotiated>},
    {"EachUnitWithAnOpenStream", SendAllUnits<State::kOpen>},
    {"FramesAtRandom",
     [](Victim* victim) {
       SendAtRandom(victim, victim->is_server() ? 1000 : 300);
     }},
    {"NumbersOfAnySize", SendNumbersOfAnySize},
    UnderTls({"FramesAtRandomUnderTls",
              [](Victim* victim) { SendAtRandom(victim, 100); }}),
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }
TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Systematic, AgainstServer,
                         ::testing::ValuesIn(kSweeps), NameOfTest);
INSTANTIATE_TEST_SUITE_P(Systematic, AgainstClient,
                         ::testing::ValuesIn(kSweeps), NameOfTest);

}  // namespace
}  // namespace penstock::adversary
