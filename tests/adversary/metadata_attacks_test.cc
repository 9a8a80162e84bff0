// Tests metadata that no gRPC sends. The attack may end its own call, but
// nothing else.

#include <functional>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/metadata.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

using Blocks = std::vector<std::string>;

// Returns true if the stream ended, but not the session.
bool AwaitStreamEnd(Peer* peer, uint32_t stream) {
  while (absl::optional<Peer::Received> received = peer->Next()) {
    const Frame& frame = received->frame;
    const bool ends =
        frame.type == type::kTrailers || frame.type == type::kReset;
    if (ends && frame.stream == stream) return true;
  }
  return false;
}

std::string Shown(const std::string& block) {
  return absl::CHexEscape(block.substr(0, 200));
}

// Returns the victim's next session. Restarts a victim that has died, so that
// the remaining rows of a table are tested too. Returns null after too many
// deaths.
std::unique_ptr<Peer> NextSession(Victim* victim, int* deaths) {
  constexpr int kMaxDeaths = 20;
  std::unique_ptr<Peer> peer = victim->TrySession();
  if (peer != nullptr || ++*deaths > kMaxDeaths) return peer;
  ADD_FAILURE() << "no session: the victim is " << victim->process()->Fate();
  victim->Restart();
  return victim->TrySession();
}

// Sends each block in a separate call, in frames of `say`.
void Ask(Victim* victim, const Blocks& blocks,
         const std::function<void(Peer*, const std::string&, uint32_t*)>& say) {
  int deaths = 0;
  std::unique_ptr<Peer> peer = victim->NewSession();
  for (const std::string& block : blocks) {
    uint32_t stream = 0;
    say(peer.get(), block, &stream);
    if (AwaitStreamEnd(peer.get(), stream)) continue;
    ADD_FAILURE() << "the session ended, or the call did not, by "
                  << Shown(block);
    peer = NextSession(victim, &deaths);
    if (peer == nullptr) return;
  }
}

void AsHeaders(Peer* peer, const std::string& block, uint32_t* stream) {
  *stream = peer->OpenStream(block);
  peer->Queue(FrameOf(type::kMessage, *stream, "eightbts"));
  peer->Queue(FrameOf(type::kHalfClose, *stream, ""));
  peer->Flush();
}

void AsHeadersTwice(Peer* peer, const std::string& block, uint32_t* stream) {
  *stream = peer->OpenStream(RequestMetadata("/victim/Echo"));
  peer->SendLong(FrameOf(type::kHeaders, *stream, block));
}

// Sends the blocks in a client's trailers, which a server does not answer.
void InTrailersOfClient(Victim* victim, const Blocks& blocks) {
  std::unique_ptr<Peer> peer = victim->NewSession();
  for (const std::string& block : blocks) {
    const uint32_t stream = peer->OpenStream(RequestMetadata("/victim/Echo"));
    EXPECT_TRUE(peer->SendLong(FrameOf(type::kTrailers, stream, block)))
        << "before " << Shown(block);
  }
  EXPECT_TRUE(peer->Finish());
}

// Defines an entry by kEntry, and then uses the entry by its number. Tries only
// some blocks, because each needs a session of its own.
void AsEntry(Victim* victim, const Blocks& blocks) {
  constexpr size_t kStep = 3;
  for (size_t i = 0; i < blocks.size(); i += kStep) {
    std::unique_ptr<Peer> peer = victim->NewSession();
    peer->Queue(FrameOf(type::kEntry, 0, blocks[i], kFirstEntry));
    const std::string metadata =
        absl::StrCat(RequestMetadata("/victim/Echo"), U8(kFirstEntry));
    uint32_t stream = 0;
    AsHeaders(peer.get(), metadata, &stream);
    peer->Finish();
  }
}

// Answers each call of the victim, and each retry, until each block has been an
// answer. A ping after each block shows which block killed the victim.
void Answer(
    Victim* victim, const Blocks& blocks,
    const std::function<void(Peer*, const std::string&, uint32_t)>& say) {
  int deaths = 0;
  for (size_t next = 0; next < blocks.size();) {
    std::unique_ptr<Peer> peer = NextSession(victim, &deaths);
    if (peer == nullptr) return;
    size_t answered = next;
    while (absl::optional<Peer::Received> received = peer->Next()) {
      if (received->frame.type == type::kPong) ++answered;
      if (received->frame.type != type::kHeaders) continue;
      say(peer.get(), blocks[next++ % blocks.size()], received->frame.stream);
      peer->Send(FrameOf(type::kPing, 0, U64(next)));
    }
    if (victim->process()->IsAlive()) continue;
    ADD_FAILURE() << "by " << Shown(blocks[answered % blocks.size()])
                  << ", or by what came before it";
  }
}

void InHeaders(Peer* peer, const std::string& block, uint32_t stream) {
  peer->SendLong(FrameOf(type::kHeaders, stream, block));
  peer->Send(FrameOf(type::kTrailers, stream, Known(key::kGrpcStatus, "0")));
}

void InTrailers(Peer* peer, const std::string& block, uint32_t stream) {
  peer->Queue(FrameOf(type::kHeaders, stream, ResponseMetadata()));
  peer->SendLong(FrameOf(type::kTrailers, stream, block));
}

void InTrailersOnly(Peer* peer, const std::string& block, uint32_t stream) {
  peer->SendLong(FrameOf(type::kTrailers, stream, block));
}

// Returns blocks that killed servers and clients at b924bfc.
Blocks WithoutIdentity() {
  Blocks blocks;
  for (uint64_t set : {0ull, 2ull, 4ull, 6ull, 0x80000000ull, ~0ull << 1}) {
    blocks.push_back(Known(key::kAcceptEncoding, U64(set)));
  }
  return blocks;
}

Blocks Behind(const std::string& valid, const Blocks& odd) {
  Blocks blocks;
  for (const std::string& block : odd) blocks.push_back(valid + block);
  return blocks;
}

template <void (*say)(Peer*, const std::string&, uint32_t*)>
void AskAll(Victim* victim) {
  Ask(victim, Behind(RequestMetadata("/victim/Echo"), OddEntries()), say);
}

template <void (*say)(Peer*, const std::string&, uint32_t)>
void AnswerAll(Victim* victim) {
  Answer(victim, OddEntries(), say);
}

const Attack kOnServers[] = {
    {"AGoodCallIsAnswered",
     [](Victim* victim) {
       std::unique_ptr<Peer> peer = victim->NewSession();
       uint32_t stream = 0;
       AsHeaders(peer.get(), RequestMetadata("/victim/Echo"), &stream);
       const absl::optional<Frame> echo = peer->Await(type::kMessage);
       ASSERT_TRUE(echo.has_value());
       EXPECT_EQ(echo->payload, "eightbts");
       EXPECT_EQ(peer->Await(type::kTrailers)->payload, U8(133));
     }},
    {"MetadataWithoutIdentityEncodingIsHarmless",
     [](Victim* victim) {
       Ask(victim, Behind(RequestMetadata("/victim/Echo"), WithoutIdentity()),
           AsHeaders);
     }},
    {"EachOddValueInHeadersEndsItsCallAtMost", AskAll<AsHeaders>},
    {"EachOddValueInHeadersThatCameTwiceEndsItsCallAtMost",
     AskAll<AsHeadersTwice>},
    {"EachOddValueInAClientsTrailersEndsItsCallAtMost",
     [](Victim* victim) { InTrailersOfClient(victim, OddEntries()); }},
    {"RequestsWithoutWhatTheyMustHaveEndTheirCallsAtMost",
     [](Victim* victim) { Ask(victim, LackingRequests(), AsHeaders); }},
    {"EachOddValueByNumberIsHarmless",
     [](Victim* victim) { AsEntry(victim, OddEntries()); }},
};

Attack OnClient(const char* name, void (*run)(Victim*)) {
  Attack attack = {name, run};
  attack.victim.calls = 50;
  return attack;
}

const Attack kOnClients[] = {
    OnClient("MetadataWithoutIdentityEncodingIsHarmless",
             [](Victim* victim) {
               Answer(victim, Behind(ResponseMetadata(), WithoutIdentity()),
                      InHeaders);
             }),
    OnClient("EachOddValueInHeadersEndsItsCallAtMost", AnswerAll<InHeaders>),
    OnClient("EachOddValueInTrailersEndsItsCallAtMost", AnswerAll<InTrailers>),
    OnClient("EachOddValueInTrailersAloneEndsItsCallAtMost",
             AnswerAll<InTrailersOnly>),
    OnClient("EachOddValueBehindAGoodStatusEndsItsCallAtMost",
             [](Victim* victim) {
               Answer(victim,
                      Behind(Known(key::kGrpcStatus, "14"), OddEntries()),
                      InTrailersOnly);
             }),
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }
TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Metadata, AgainstServer,
                         ::testing::ValuesIn(kOnServers), NameOfTest);
INSTANTIATE_TEST_SUITE_P(Metadata, AgainstClient,
                         ::testing::ValuesIn(kOnClients), NameOfTest);

}  // namespace
}  // namespace penstock::adversary
