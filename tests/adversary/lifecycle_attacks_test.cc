// Tests connections that end at the worst moment, or never become usable.

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/adversary/attack.h"
#include "tests/adversary/wire.h"

namespace penstock::adversary {
namespace {

constexpr int kConnections = 150;
constexpr int kStreams = 64;

// Opens many streams in one write, and closes the connection while the victim
// is still accepting the streams.
std::unique_ptr<Peer> WithStreams(Victim* victim) {
  const std::string metadata = RequestMetadata("/victim/Echo");
  std::unique_ptr<Peer> peer = victim->NewSession();
  for (uint32_t stream = 1; stream < 2 * kStreams; stream += 2) {
    peer->Queue(FrameOf(type::kHeaders, stream, metadata));
  }
  return peer;
}

void EndByReset(Victim* victim) {
  for (int i = 0; i < kConnections && victim->process()->IsAlive(); ++i) {
    std::unique_ptr<Peer> peer = WithStreams(victim);
    peer->Flush();
    peer->Abort();
  }
}

void EndByClose(Victim* victim) {
  for (int i = 0; i < kConnections && victim->process()->IsAlive(); ++i) {
    std::unique_ptr<Peer> peer = WithStreams(victim);
    peer->Flush();
  }
}

// Sends a frame of an unknown type in the same packet as the frames that open
// the streams. The unknown frame makes the victim end the session.
void EndByNonsense(Victim* victim) {
  for (int i = 0; i < kConnections && victim->process()->IsAlive(); ++i) {
    std::unique_ptr<Peer> peer = WithStreams(victim);
    peer->Queue(FrameOf(255, 0));
    peer->Flush();
    EXPECT_TRUE(peer->AwaitEnd());
  }
}

// Pings until the server ends the session.
void EndByPings(Victim* victim) {
  for (int i = 0; i < kConnections && victim->process()->IsAlive(); ++i) {
    std::unique_ptr<Peer> peer = WithStreams(victim);
    for (int pings = 0; pings < 8; ++pings) {
      peer->Queue(FrameOf(type::kPing, 0, U64(pings)));
    }
    peer->Flush();
    EXPECT_TRUE(peer->AwaitEnd());
  }
}

// Sends a prefix of a peer's bytes and closes the connection, for each length
// of the prefix.
void EndAfterEachByte(Victim* victim) {
  const std::string hello =
      Unit(unit::kPacket, 0, Encode(FrameOf(type::kHello, 0, Encode(Hello()))));
  const std::string all =
      victim->is_server() ? ClientPreface() + hello : ServerSettings() + hello;
  for (size_t size = 0; size <= all.size(); ++size) {
    std::unique_ptr<Peer> peer = victim->NewConnection();
    peer->Write(absl::string_view(all).substr(0, size));
    if (size % 2 == 0) {
      peer->Abort();
    } else {
      EXPECT_TRUE(peer->Finish());
    }
  }
}

const Attack kOnServers[] = {
    {"AResetWhileStreamsAreAcceptedIsHarmless", EndByReset},
    {"AnEndWhileStreamsAreAcceptedIsHarmless", EndByClose},
    {"NonsenseWhileStreamsAreAcceptedIsHarmless", EndByNonsense},
    {"PingsWhileStreamsAreAcceptedAreHarmless", EndByPings},
    {"AnEndAfterAnyByteIsHarmless", EndAfterEachByte},
    UnderTls({"AnEndAfterAnyByteUnderTlsIsHarmless", EndAfterEachByte}),
};

const Attack kOnClients[] = {
    {"AnEndAfterAnyByteIsHarmless", EndAfterEachByte},
    UnderTls({"AnEndAfterAnyByteUnderTlsIsHarmless", EndAfterEachByte}),
};

TEST_P(AgainstServer, NobodyIsHarmed) { Run(); }
TEST_P(AgainstClient, NobodyIsHarmed) { Run(); }

INSTANTIATE_TEST_SUITE_P(Lifecycle, AgainstServer,
                         ::testing::ValuesIn(kOnServers), NameOfTest);
INSTANTIATE_TEST_SUITE_P(Lifecycle, AgainstClient,
                         ::testing::ValuesIn(kOnClients), NameOfTest);

}  // namespace
}  // namespace penstock::adversary
