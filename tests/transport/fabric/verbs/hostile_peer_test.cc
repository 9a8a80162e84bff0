// Tests a peer that knows the token, and breaks all later rules.

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/verbs_pair.h"
#include "tests/transport/fabric/verbs/drain_loop.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "tests/transport/fabric/verbs/raw_peer.h"
#include "transport/fabric/verbs/formats/packet.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

std::string Packet(PacketHeader::Kind kind, uint16_t credits,
                   const std::string& text) {
  std::string bytes(kPacketHeaderBytes, '\0');
  PacketHeader header;
  header.kind = kind;
  header.credits = credits;
  EncodeHeader(header, reinterpret_cast<uint8_t*>(&bytes[0]));
  return bytes + text;
}
std::string Packet(const std::string& text) {
  return Packet(PacketHeader::Kind::kPacket, 0, text);
}

class HostilePeerTest : public testing::Test {
 protected:
  void SetUp() override { Open(DeviceOptions()); }
  void Open(const DeviceOptions& device) {
    peer_.reset();
    ends_ = std::make_unique<Ends>(device);
    const std::string offer = ends_->listening->Offer().value();
    Outcome accepted;
    auto listen = ends_->listening->Listen(kTestToken, accepted.callback());
    peer_ =
        std::make_unique<RawPeer>(ends_->api, ends_->api->context("client"));
    peer_->Prepare(offer);
    ASSERT_EQ(peer_->CallProperly(kTestToken), RDMA_CM_EVENT_ESTABLISHED);
    absl::StatusOr<std::unique_ptr<Endpoint>> endpoint = accepted.Take();
    ASSERT_TRUE(endpoint.ok()) << endpoint.status();
    ends_->server.endpoint = *std::move(endpoint);
    server()->Start(&events());
  }
  void TearDown() override {
    ends_->Exchange();
    ends_->Close();
    EXPECT_TRUE(ends_->api->misuse().empty()) << ends_->api->misuse()[0];
    peer_.reset();
  }

  End& server() { return ends_->server; }
  Recorder& events() { return server().events; }
  // Expects that the connection has ended with `code`, after `packets` packets.
  void ExpectEnd(absl::StatusCode code, size_t packets = 0) {
    ends_->Exchange();
    ASSERT_EQ(events().broken.size(), 1u);
    EXPECT_EQ(events().broken[0].code(), code) << events().broken[0];
    EXPECT_EQ(events().packets.size(), packets);
  }

  std::unique_ptr<Ends> ends_;
  std::unique_ptr<RawPeer> peer_;
};

TEST_F(HostilePeerTest, ProperPacketIsDelivered) {
  EXPECT_EQ(peer_->Send(Packet("hello")), IBV_WC_SUCCESS);
  ends_->Exchange();
  EXPECT_EQ(events().packets, std::vector<std::string>{"hello"});
  EXPECT_TRUE(events().broken.empty());
}

TEST_F(HostilePeerTest, PacketWithoutItsHeaderEndsIt) {
  for (const size_t size : {0, 1, 7}) {
    ASSERT_NO_FATAL_FAILURE(Open(DeviceOptions()));
    peer_->Send(std::string(size, '\1'));
    ExpectEnd(absl::StatusCode::kInvalidArgument);
  }
}

TEST_F(HostilePeerTest, MalformedHeaderEndsIt) {
  peer_->Send(Packet("good"));
  std::string bad = Packet("bad");
  bad[1] = 1;
  peer_->Send(bad);
  ExpectEnd(absl::StatusCode::kInvalidArgument, /*packets=*/1);
}

TEST_F(HostilePeerTest, CreditsWithATailEndIt) {
  peer_->Send(Packet(PacketHeader::Kind::kCredits, 0, "tail"));
  ExpectEnd(absl::StatusCode::kInvalidArgument);
}

TEST_F(HostilePeerTest, PacketLongerThanABufferEndsIt) {
  peer_->Send(Packet(std::string(17 * 1024, 'x')));
  ends_->Exchange();
  EXPECT_EQ(events().broken.size(), 1u);
  EXPECT_TRUE(events().packets.empty());
}

TEST_F(HostilePeerTest, CreditsForPacketsThatWereNeverSentEndIt) {
  peer_->Send(Packet(PacketHeader::Kind::kCredits, 1, ""));
  ExpectEnd(absl::StatusCode::kDataLoss);
}

TEST_F(HostilePeerTest, AllTheCreditsOfANumberEndIt) {
  ASSERT_TRUE(Ends::Send(server(), "x"));
  peer_->Send(Packet(PacketHeader::Kind::kPacket, 0xffff, "y"));
  ExpectEnd(absl::StatusCode::kDataLoss);
}

// Tests a flood of packets. A packet without a posted receive waits at the
// sender's device.
TEST_F(HostilePeerTest, FloodWaitsForReceives) {
  int taken = 0;
  for (int i = 0; i < 40; ++i) {
    if (peer_->Send(Packet("flood")) == IBV_WC_SUCCESS) ++taken;
  }
  EXPECT_EQ(taken, 16);
  ends_->Exchange();
  EXPECT_EQ(events().packets.size(), 40u);
  EXPECT_TRUE(events().broken.empty());
}

TEST_F(HostilePeerTest, PeerThatNeverGrantsIsSentABoundedNumber) {
  int sent = 0;
  while (Ends::Send(server(), "x")) ++sent;
  EXPECT_LT(sent, 17);
  ends_->Exchange();
  EXPECT_EQ(events().writable, 0);
  EXPECT_FALSE(Ends::Send(server(), "x"));
}

TEST_F(HostilePeerTest, ReadAroundAWindowIsRefused) {
  for (const int shift : {-1, 1}) {
    ASSERT_NO_FATAL_FAILURE(Open(DeviceOptions()));
    const RemotePart part =
        server()->Expose(Ends::PayloadOf(std::string(256, 'x')), 1)->region[0];
    const auto key = static_cast<uint32_t>(part.key);
    EXPECT_EQ(peer_->Read(part.offset, 256, key), IBV_WC_SUCCESS);
    EXPECT_EQ(peer_->Read(part.offset + static_cast<uint64_t>(shift), 256, key),
              IBV_WC_REM_ACCESS_ERR);
  }
}

TEST_F(HostilePeerTest, WritingIsRefusedEverywhere) {
  for (const size_t size : {size_t{256}, size_t{600} * 1000}) {
    ASSERT_NO_FATAL_FAILURE(Open(DeviceOptions()));
    const Exposure exposure =
        server()->Expose(Ends::PayloadOf(std::string(size, 'x')), 1).value();
    EXPECT_EQ(peer_->Write(exposure.region[0].offset, 16,
                           static_cast<uint32_t>(exposure.region[0].key)),
              IBV_WC_REM_ACCESS_ERR);
    EXPECT_EQ(exposure.stable.pieces()[0].data[0], 'x');
  }
}

// Tests a peer that guesses keys which only this side uses: the keys of regions
// under the windows.
TEST_F(HostilePeerTest, GuessedKeysAreRefused) {
  const RemotePart part =
      server()->Expose(Ends::PayloadOf(std::string(256, 'x')), 1)->region[0];
  const auto key = static_cast<uint32_t>(part.key);
  int refused = 0;
  for (int distance = -20; distance <= 20; ++distance) {
    const uint32_t guess = key + static_cast<uint32_t>(distance) * 256;
    if ((guess & ~0xffu) == (key & ~0xffu)) continue;
    ASSERT_NE(peer_->Read(part.offset, 1, guess), IBV_WC_SUCCESS) << distance;
    ++refused;
    ASSERT_NO_FATAL_FAILURE(Open(DeviceOptions()));
    (void)server()->Expose(Ends::PayloadOf(std::string(256, 'x')), 1);
  }
  EXPECT_EQ(refused, 40);
}

// Tests a peer that invalidates a window itself. The device then fails this
// side's later withdrawal, which may end only this connection.
TEST_F(HostilePeerTest, WindowThatThePeerInvalidatesEndsItAtMost) {
  const RemotePart part =
      server()->Expose(Ends::PayloadOf(std::string(256, 'x')), 1)->region[0];
  EXPECT_EQ(
      peer_->SendWithInvalidate(Packet("inv"), static_cast<uint32_t>(part.key)),
      IBV_WC_SUCCESS);
  ends_->Exchange();
  server()->Withdraw({part});
  // Sends enough packets to make the device report completions.
  for (int i = 0; i < 5; ++i) (void)Ends::Send(server(), "x");
  ends_->Exchange();
  EXPECT_LE(events().broken.size(), 1u);
}

TEST_F(HostilePeerTest, InvalidatingAForeignKeyEndsIt) {
  // Tries two keys: that of the region that was registered right before the
  // window, and a key that does not exist.
  for (const uint32_t distance : {uint32_t{0} - 3 * 256, uint32_t{1} << 20}) {
    ASSERT_NO_FATAL_FAILURE(Open(DeviceOptions()));
    const RemotePart part =
        server()
            ->Expose(Ends::PayloadOf(std::string(600 * 1000, 'x')), 1)
            ->region[0];
    const auto key = static_cast<uint32_t>(part.key);
    EXPECT_NE(peer_->SendWithInvalidate(Packet("inv"), key + distance),
              IBV_WC_SUCCESS);
    ends_->Exchange();
    EXPECT_EQ(events().broken.size(), 1u);
  }
}

TEST_F(HostilePeerTest, PeerThatNeverReadsCostsItsBudgetOnly) {
  for (int i = 0; i < 200; ++i) {
    (void)server()->Expose(Ends::PayloadOf(std::string(1000, 'x')), 1);
  }
  ends_->Exchange();
  EXPECT_TRUE(events().broken.empty());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
