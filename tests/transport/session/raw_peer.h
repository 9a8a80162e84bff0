// A session whose peer is the test. The test writes each frame.

#ifndef PENSTOCK_TESTS_TRANSPORT_SESSION_RAW_PEER_H_
#define PENSTOCK_TESTS_TRANSPORT_SESSION_RAW_PEER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/fabric/fabric.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {

// Parses frames and records them: "headers 1 open", "release 0 7", "ack" with
// the acknowledged number, and "hello".
class RawPeer : public fabric::EndpointEvents {
 public:
  explicit RawPeer(std::unique_ptr<fabric::Endpoint> endpoint);

  void OnPacket(absl::Span<const uint8_t> packet) override;
  void OnWritable() override {}
  void OnReadDone(uint64_t, const absl::Status&) override {}
  void OnDoorbell() override {}
  void OnBroken(const absl::Status&) override { lines_.push_back("broken"); }

  fabric::Endpoint* endpoint() { return endpoint_.get(); }
  void SendBytes(absl::string_view bytes);
  // Sends a frame. Numbers a sequenced frame, unless `header` has a number.
  void Send(wire::FrameHeader header, absl::string_view payload = "");
  void SendHello(uint32_t stream_window = 4096,
                 uint32_t max_streams = UINT32_MAX);
  Lines Take();
  // Returns the highest received sequence number.
  uint64_t received() const { return received_; }

  uint64_t next_sequence = 1;

 private:
  std::unique_ptr<fabric::Endpoint> endpoint_;
  Lines lines_;
  uint64_t received_ = 0;
};

wire::FrameHeader Header(wire::FrameType type, uint32_t stream = 0,
                         uint32_t aux = 0);
// Returns the payload of a kRelease, kPing or kPong.
std::string IdPayload(uint64_t id);

// A test of a session against a RawPeer. The session is a server, or a client
// with `config.is_client`.
class RawPeerTest : public ::testing::Test {
 protected:
  explicit RawPeerTest(const LinkOptions& fast = LinkOptions()) : fast_(fast) {}
  // Starts the session. Both hellos are then in flight.
  void Begin(const Config& config = ServerConfig());
  // Starts the session, and delivers the hellos and all later packets.
  void Open(const Config& config = ServerConfig());
  // Adds the session's first fast path.
  void AddPath();
  void SendPathFrame(wire::FrameType type, uint32_t epoch,
                     absl::string_view payload = "why");
  // Delivers all packets.
  void Run();

  Link lifeline_{LifelineOptions()};
  Link fast_;
  std::unique_ptr<RawPeer> raw_;
  std::unique_ptr<RawPeer> raw_fast_;
  std::unique_ptr<Peer> peer_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_SESSION_RAW_PEER_H_
