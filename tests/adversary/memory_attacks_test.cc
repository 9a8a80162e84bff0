// Tests peers that make their victim hold data that is never fetched, read or
// ended.

#include <algorithm>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

constexpr uint64_t kMessage = 1 << 20;
// The channel's default limit of a message, in bytes.
constexpr uint64_t kLargest = 4 << 20;

std::string Reply(int count, uint64_t size) {
  return absl::StrCat(count, " ", size);
}

// Opens a stream on which the victim sends as much as its credit allows.
uint32_t OpenReplying(Peer* peer, int count, uint64_t size) {
  const uint32_t stream = peer->OpenStream(RequestMetadata("/victim/Reply"));
  peer->Queue(FrameOf(type::kMessage, stream, Reply(count, size)));
  peer->Queue(FrameOf(type::kHalfClose, stream));
  peer->Flush();
  return stream;
}

// Opens streams on which the victim's application reads nothing, or everything.
std::vector<uint32_t> OpenStreams(Peer* peer, const char* method, int count) {
  std::vector<uint32_t> streams;
  for (int i = 0; i < count; ++i) {
    streams.push_back(peer->OpenStream(RequestMetadata(method)));
    if (peer->is_client()) continue;
    peer->Send(FrameOf(type::kHeaders, streams.back(), ResponseMetadata()));
  }
  return streams;
}

// Makes calls whose replies are all announced, and never fetched or released.
void LeaveRepliesUnreleased(Victim* victim) {
  constexpr int kReplies = 400;
  std::unique_ptr<Peer> peer = victim->NewSession();
  for (int i = 0; i < kReplies; ++i) {
    OpenReplying(peer.get(), 1, kMessage);
    // Returns if the victim accepts no further call because a limit is reached.
    if (!peer->Await(type::kTrailers, 4 * kStall).has_value()) return;
  }
}

// Attacks like LeaveRepliesUnreleased(), but reads nothing from the socket.
// Then makes calls on another session, whose end shows that the victim has
// handled this attack.
void LeaveRepliesUnread(Victim* victim) {
  constexpr int kReplies = 400;
  std::unique_ptr<Peer> peer = victim->NewSession();
  std::unique_ptr<Peer> clock = victim->NewSession();
  peer->reading = Peer::Reading::kNone;
  for (int i = 0; i < kReplies; ++i) {
    OpenReplying(peer.get(), 1, kMessage);
    for (int ticks = 0; ticks < 3; ++ticks) {
      OpenReplying(clock.get(), 0, 0);
      if (!clock->Await(type::kTrailers).has_value()) return;
    }
  }
}

// Gives unlimited credit for one endless answer, and reads nothing. The
// progress of calls on another session shows the progress of the attack.
void GiveCreditWithoutReading(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession();
  peer->reading = Peer::Reading::kNone;
  const uint32_t stream = OpenReplying(peer.get(), 1000000, kMessage);
  std::unique_ptr<Peer> clock = victim->NewSession();
  for (int i = 0; i < 400; ++i) {
    if (!peer->Send(FrameOf(type::kCredit, stream, "", UINT32_MAX))) return;
    OpenReplying(clock.get(), 0, 0);
    if (!clock->Await(type::kTrailers).has_value()) return;
  }
}

// Gives unlimited credit for a client's endless requests, and reads nothing.
// The progress of the client's other calls shows the progress of the attack.
void GiveCreditToAClient(Victim* victim) {
  std::unique_ptr<Peer> peer = victim->NewSession();
  const uint32_t stream = OpenStreams(peer.get(), "", 1)[0];
  peer->reading = Peer::Reading::kNone;
  for (int i = 0; i < 60; ++i) {
    if (!peer->Send(FrameOf(type::kCredit, stream, "", UINT32_MAX))) return;
    victim->AwaitCalls();
  }
}

// Answers all reads except the last, so that the victim really allocates the
// memory. Returns false if the victim stops reading.
bool AnswerAllReadsButOne(Peer* peer, uint64_t size) {
  const std::string zeros(1 << 20, '\0');
  for (uint64_t left = size; left > 0;) {
    const absl::optional<Peer::Received> received = peer->NextIfAny(2 * kStall);
    if (!received.has_value()) return false;
    if (received->unit != unit::kRead) continue;
    const uint64_t length = Number(received->body.substr(16, 4));
    left -= std::min(left, length);
    if (left == 0) break;
    peer->SendUnit(unit::kReadData, received->cookie,
                   absl::string_view(zeros).substr(0, length));
  }
  return true;
}

// Repeatedly announces a message, lets the victim read most of it, and resets
// the stream.
void AbandonReads(Victim* victim) {
  constexpr int kStreams = 60;
  std::unique_ptr<Peer> peer = victim->NewSession();
  uint64_t id = 0;
  for (uint32_t stream : OpenStreams(peer.get(), "/victim/Echo", kStreams)) {
    ++id;
    if (!peer->Send(
            FrameOf(type::kAnnounce, stream, Announcement(id, kLargest, id)))) {
      return;
    }
    if (!AnswerAllReadsButOne(peer.get(), kLargest)) return;
    peer->Send(FrameOf(type::kReset, stream, "", 1));
  }
}

// Sends frames that wait for a message that never arrives. Uses few streams,
// each with the maximum number of frames.
template <uint8_t kType>
void PileUpMetadata(Victim* victim) {
  constexpr int kStreams = 2;
  std::unique_ptr<Peer> peer = victim->NewSession();
  uint64_t id = 0;
  for (uint32_t stream : OpenStreams(peer.get(), "/victim/Echo", kStreams)) {
    ++id;
    peer->Send(
        FrameOf(type::kAnnounce, stream, Announcement(id, kMessage, id)));
    for (int i = 0; i < 7; ++i) {
      const std::string metadata =
          Literal("x", std::string(kMaxJoinedBytes - 64, 'v'));
      if (!peer->SendLong(FrameOf(kType, stream, metadata))) return;
    }
  }
}

// Fills the windows of all streams with small messages.
void FillWindows(Victim* victim) {
  constexpr int kStreams = 60;
  const std::string message(16000, 'm');
  std::unique_ptr<Peer> peer = victim->NewSession();
  for (uint32_t stream : OpenStreams(peer.get(), "/victim/Unread", kStreams)) {
    for (uint64_t sent = 0; sent < (4 << 20) - message.size();
         sent += message.size() + 64) {
      if (!peer->Queue(FrameOf(type::kMessage, stream, message))) return;
    }
    if (!peer->Flush()) return;
  }
}

// Sends empty messages. Each uses 64 bytes of the window, and memory.
void FillWindowsWithNothing(Victim* victim) {
  constexpr int kStreams = 16;
  std::unique_ptr<Peer> peer = victim->NewSession();
  for (uint32_t stream : OpenStreams(peer.get(), "/victim/Unread", kStreams)) {
    for (int sent = 0; sent < (4 << 20) / 64; ++sent) {
      if (!peer->Queue(FrameOf(type::kMessage, stream))) return;
    }
    if (!peer->Flush()) return;
  }
}

// Sends messages that the application does not read, and that the victim
// prefetches.
void AnnounceUnread(Victim* victim) {
  constexpr int kStreams = 60;
  std::unique_ptr<Peer> peer = victim->NewSession();
  const std::string zeros(1 << 20, '\0');
  uint64_t id = 0;
  for (uint32_t stream : OpenStreams(peer.get(), "/victim/Unread", kStreams)) {
    ++id;
    peer->Send(
        FrameOf(type::kAnnounce, stream, Announcement(id, kLargest, id)));
  }
  // Answers the victim's reads until the victim stops reading.
  while (absl::optional<Peer::Received> received = peer->NextIfAny(kStall)) {
    if (received->unit != unit::kRead) continue;
    peer->SendUnit(unit::kReadData, received->cookie,
                   absl::string_view(zeros).substr(
                       0, Number(received->body.substr(16, 4))));
  }
}

// Sends frame one million, but never frame two.
template <size_t kSize>
void LeaveAGap(Victim* victim) {
  const std::string payload(kSize, 'p');
  std::unique_ptr<Peer> peer = victim->NewSession();
  peer->reading = Peer::Reading::kNone;
  for (uint64_t i = 0; i < (64 << 20) / (kSize + 32); ++i) {
    Frame frame = FrameOf(type::kMessage, 1, payload);
    frame.sequence = 1000000 + i;
    if (!peer->Queue(frame)) return;
  }
  peer->Flush();
}

void NeverEndAPayload(Victim* victim) {
  const std::string payload(kMaxFramePayload, 'p');
  std::unique_ptr<Peer> peer = victim->NewSession();
  for (int i = 0; i < 8000; ++i) {
    Frame frame = FrameOf(type::kMessage, 1, payload);
    frame.flags = kMoreFragments;
    if (!peer->Queue(frame)) return;
  }
  peer->Flush();
}

Limits OfAPayload() {
  Limits limits;
  limits.memory = kMemoryOfAPayload;
  return limits;
}

Attack OnClient(Kind kind, const char* name, void (*run)(Victim*),
                int calls = 60) {
  Attack attack = {name, run};
  attack.victim.kind = kind;
  attack.victim.calls = calls;
  return attack;
}

// Returns the attack with a higher memory limit, because the victim also needs
// memory for its streams and windows.
Attack WithWindows(Attack attack) {
  attack.limits.memory += uint64_t{4 << 20} * attack.victim.calls;
  return attack;
}

const Attack kOnServers[] = {
    {"RepliesThatAreNeverReleasedAreBounded", LeaveRepliesUnreleased},
    {"RepliesThatAreNeverReadAreBounded", LeaveRepliesUnread},
    {"CreditWithoutReadingHoldsTheHandlerBack", GiveCreditWithoutReading},
    {"ReadsAbandonedByAResetAreBounded", AbandonReads},
    {"TrailersBehindAMessageThatNeverComesAreBounded",
     PileUpMetadata<type::kTrailers>},
    {"HeadersBehindAMessageThatNeverComesAreBounded",
     PileUpMetadata<type::kHeaders>},
    {"WindowsFilledOnManyStreamsAreBounded", FillWindows},
    {"EmptyMessagesOnManyStreamsAreBounded", FillWindowsWithNothing},
    {"MessagesReadAheadOnManyStreamsAreBounded", AnnounceUnread},
    {"EmptyFramesAheadOfAGapAreBounded", LeaveAGap<0>, OfAPayload()},
    {"LongFramesAheadOfAGapAreBounded", LeaveAGap<16000>, OfAPayload()},
    {"APayloadWithoutEndIsBounded", NeverEndAPayload, OfAPayload()},
};

const Attack kOnClients[] = {
    OnClient(Kind::kLarge, "CreditWithoutReadingHoldsTheCallerBack",
             GiveCreditToAClient, 1),
    OnClient(Kind::kDuplex, "ReadsAbandonedByAResetAreBounded", AbandonReads),
    OnClient(Kind::kDuplex, "TrailersBehindAMessageThatNeverComesAreBounded",
             PileUpMetadata<type::kTrailers>),
    WithWindows(OnClient(Kind::kUnread, "WindowsFilledOnManyStreamsAreBounded",
                         FillWindows)),
    OnClient(Kind::kUnread, "MessagesReadAheadOnManyStreamsAreBounded",
             AnnounceUnread),
    {"LongFramesAheadOfAGapAreBounded", LeaveAGap<16000>, OfAPayload()},
    {"APayloadWithoutEndIsBounded", NeverEndAPayload, OfAPayload()},
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }
TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Memory, AgainstServer, ::testing::ValuesIn(kOnServers),
                         NameOfTest);
INSTANTIATE_TEST_SUITE_P(Memory, AgainstClient, ::testing::ValuesIn(kOnClients),
                         NameOfTest);

}  // namespace
}  // namespace penstock::adversary
