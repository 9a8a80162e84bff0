// Tests invalid data on an shm path in use: in the path's ring, in its control
// page and in lent memory.

#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/shm_session.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

// Changes the control page by `spoil`. Only the path may break.
void Spoil(Victim* victim, const std::function<void(ShmPath*)>& spoil) {
  ShmSession session = ReachShm(victim);
  if (session.path == nullptr) return;
  spoil(session.path.get());
  ExpectCallOverLifeline(victim, session.peer.get());
}

void WriteNonsenseHeads(Victim* victim) {
  for (uint64_t head : {uint64_t{1}, uint64_t{7}, page::kRingBytes + 8,
                        uint64_t{1} << 63, UINT64_MAX, UINT64_MAX - 7}) {
    Spoil(victim, [head](ShmPath* path) { path->Store(page::kHead, head); });
  }
}

void WriteNonsenseLengths(Victim* victim) {
  for (uint32_t length : {65537u, 8189u, UINT32_MAX - 1, UINT32_MAX}) {
    Spoil(victim, [length](ShmPath* path) {
      *reinterpret_cast<uint32_t*>(path->own()->data() + page::kRing) = length;
      path->Store(page::kHead, 64);
    });
  }
}

// Writes messages of a valid length and of random bytes, which are no frames.
void WriteNonsenseMessages(Victim* victim) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Spoil(victim, [seed](ShmPath* path) {
      std::mt19937 random(seed);
      std::string message(1 + random() % 4000, '\0');
      for (char& byte : message) byte = static_cast<char>(random());
      path->Send(message);
    });
  }
}

// Marks the bytes in the ring as a message, again and again.
void OverwriteTheRing(Victim* victim) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    Spoil(victim, [seed](ShmPath* path) {
      std::mt19937 random(seed);
      for (uint64_t at = 0; at < page::kRingBytes; ++at) {
        path->own()->data()[page::kRing + at] = static_cast<uint8_t>(random());
      }
      path->Store(page::kHead, random() % page::kRingBytes / 8 * 8 + 8);
    });
  }
}

// Makes the victim send more than the ring holds, and lend memory of its arena.
void AskForReplies(Peer* peer) {
  for (const char* replies : {"40 1000", "10 100000"}) {
    const uint32_t stream = peer->OpenStream(RequestMetadata("/victim/Reply"));
    peer->Send(FrameOf(type::kMessage, stream, replies));
  }
}

// Changes a field of the control page before the client's calls use the path.
void ClaimAsServer(Victim* victim, uint64_t field, uint64_t value) {
  ShmServer server(victim, Moment::kWelcomed);
  std::memcpy(server.memory.data() + field, &value, sizeof value);
  server.peer->Send(FrameOf(type::kPathReady, 0, "shm", 1));
  ExpectCallOverLifeline(victim, server.peer.get());
}

void ClaimAsClient(Victim* victim, uint64_t field, uint64_t value) {
  ShmSession session = ReachShm(victim);
  if (session.path == nullptr) return;
  session.path->Store(field, value);
  AskForReplies(session.peer.get());
  ExpectCallOverLifeline(victim, session.peer.get());
}

// Changes the tail or the releases, which acknowledge the victim's own
// messages.
void ClaimToHaveReadMore(Victim* victim, uint64_t field) {
  for (uint64_t value : {uint64_t{1} << 20, uint64_t{1} << 63}) {
    if (victim->is_server()) {
      ClaimAsClient(victim, field, value);
    } else {
      ClaimAsServer(victim, field, value);
    }
  }
}

void WriteNonsenseTails(Victim* victim) {
  ClaimToHaveReadMore(victim, page::kTail);
}

void WriteNonsenseReleases(Victim* victim) {
  ClaimToHaveReadMore(victim, page::kReleaseHead);
}

// Writes random words to the control page, while the victim works with the
// page.
void ScribbleOnThePage(Victim* victim) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    std::mt19937 random(seed);
    ShmSession session = ReachShm(victim);
    if (session.path == nullptr) return;
    for (int i = 0; i < 200; ++i) {
      session.path->Store(random() % 2048 / 8 * 8,
                          random() % 4 == 0 ? random() : 0);
      session.peer->SendUnit(unit::kDoorbell, 0, "");
    }
    EXPECT_TRUE(session.peer->Finish());
  }
}

// Attacks by a ring that the peer never reads, so that the victim's answers
// wait.
void LeaveTheRingUnread(Victim* victim) {
  const ShmSession session = ReachShm(victim);
  if (session.path == nullptr) return;
  Peer* const peer = session.peer.get();
  for (uint64_t id = 1; id < 1200000; ++id) {
    if (!peer->Queue(FrameOf(type::kAnnounce, 77, Announcement(id, 1, id)))) {
      return;
    }
  }
  peer->Flush();
}

// Lends segments without end, twice, or with a wrong size, and takes segments
// back that were not lent.
void LendOddSegments(Victim* victim) {
  SharedMemory memory(1 << 20);
  for (uint64_t size :
       {uint64_t{1} << 20, uint64_t{0}, uint64_t{1} << 40, UINT64_MAX}) {
    const ShmSession session = ReachShm(victim);
    if (session.path == nullptr) return;
    SetupSocket* const socket = session.path->socket();
    for (uint32_t id = 0; id < 300; ++id) {
      socket->Send(SetupMessage(setup::kSegment, size, id / 2, ""),
                   {memory.fd()});
      socket->Send(SetupMessage(setup::kTakenBack, 0, id * 7, ""), {});
    }
    socket->Send(SetupMessage(setup::kTakenBack, 0, 1, ""), {memory.fd()});
    session.peer->SendUnit(unit::kDoorbell, 0, "");
    EXPECT_TRUE(session.peer->Finish());
  }
}

// Returns options for more calls than the ring has room for first frames.
VictimOptions CallingMuch() {
  VictimOptions options;
  options.calls = 200;
  return options;
}

VictimOptions Lending() {
  VictimOptions options;
  options.kind = Kind::kLarge;
  return options;
}

const Attack kAttacks[] = {
    {"ANonsenseHeadBreaksThePathOnly", WriteNonsenseHeads},
    {"ANonsenseLengthBreaksThePathOnly", WriteNonsenseLengths},
    {"ANonsenseMessageBreaksThePathOnly", WriteNonsenseMessages},
    UnderTls(
        {"ANonsenseMessageUnderTlsBreaksThePathOnly", WriteNonsenseMessages}),
    {"AnOverwrittenRingBreaksThePathOnly", OverwriteTheRing},
    {"ANonsenseTailBreaksThePathOnly", WriteNonsenseTails, {}, CallingMuch()},
    {"NonsenseReleasesBreakThePathOnly", WriteNonsenseReleases, {}, Lending()},
    {"OddSegmentsAreHarmless", LendOddSegments},
    {"AScribbledPageIsHarmless", ScribbleOnThePage},
    {"ARingThatIsNeverReadIsBounded", LeaveTheRingUnread},
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }
TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Ring, AgainstServer, ::testing::ValuesIn(kAttacks),
                         NameOfTest);
INSTANTIATE_TEST_SUITE_P(Ring, AgainstClient, ::testing::ValuesIn(kAttacks),
                         NameOfTest);

}  // namespace
}  // namespace penstock::adversary
