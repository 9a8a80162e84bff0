// Plays the peer of a fuzzed session.

#ifndef PENSTOCK_TESTS_FUZZ_HOSTILE_PEER_H_
#define PENSTOCK_TESTS_FUZZ_HOSTILE_PEER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "tests/fuzz/input.h"
#include "tests/fuzz/session_steps.h"
#include "transport/fabric/fabric.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fuzz {

// Sends packets as the input's steps demand. Checks the form of received
// packets.
class HostilePeer : public fabric::EndpointEvents {
 public:
  explicit HostilePeer(std::unique_ptr<fabric::Endpoint> lifeline);

  void AddFast(std::unique_ptr<fabric::Endpoint> fast);
  // Sends a hello as a server or as a client.
  void SendHello(bool as_server);
  void SendPathReady();
  // Executes one of the peer's steps.
  void Take(Step step, Input* input);
  // Sends a frame. Numbers a sequenced frame without a number. Path 0 is the
  // lifeline.
  void Send(int path, wire::FrameHeader header, absl::string_view payload);

  // Returns the bytes of all packets so far.
  uint64_t sent_bytes() const { return sent_bytes_; }
  uint64_t received_bytes() const { return received_bytes_; }
  uint64_t next_announce() { return next_announce_++; }

  void OnPacket(absl::Span<const uint8_t> packet) override;
  void OnWritable() override {}
  void OnReadDone(uint64_t, const absl::Status&) override {}
  void OnDoorbell() override {}
  void OnBroken(const absl::Status&) override {}

 private:
  fabric::Endpoint* endpoint(int path) {
    return path % 2 == 1 && fast_ != nullptr ? fast_.get() : lifeline_.get();
  }
  void SendFrame(bool odd, Input* input);
  void SendLong(Input* input);
  void SendAnnounced(Input* input);

  const std::unique_ptr<fabric::Endpoint> lifeline_;
  std::unique_ptr<fabric::Endpoint> fast_;
  uint64_t next_sequence_ = 1;
  uint64_t next_announce_ = 1;
  uint64_t sent_bytes_ = 0;
  uint64_t received_bytes_ = 0;
};

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_HOSTILE_PEER_H_
