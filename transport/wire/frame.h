// Frames, the units of a session. docs/protocol.md shows the bytes.

#ifndef PENSTOCK_TRANSPORT_WIRE_FRAME_H_
#define PENSTOCK_TRANSPORT_WIRE_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace penstock {
namespace wire {

// The versions of the protocol. The two sides agree on one version in the
// negotiation. In version 2 an announced message may have several parts.
constexpr uint8_t kOldestVersion = 1;
constexpr uint8_t kVersion = 2;

constexpr size_t kFrameHeaderBytes = 32;
// Limits the size of a frame, including its header. Such a frame fits into one
// packet of any fabric. A longer payload is sent in several frames, called
// fragments.
constexpr size_t kMaxFrameBytes = 16 * 1024;
constexpr size_t kMaxFramePayload = kMaxFrameBytes - kFrameHeaderBytes;

enum class FrameType : uint8_t {
  // Frames about the session. They have no sequence number, and pass only over
  // the lifeline. Each attempt at a path has a number, its epoch.
  kHello = 1,        // payload: Hello
  kPathReady = 2,    // aux: epoch; payload: name of the fabric, for people
  kPathLost = 3,     // aux: epoch; payload: the reason
  kAck = 4,          // nothing but the header's acknowledgement; any path
  kPathWanted = 5,   // aux: epoch that is to begin; from the client
  kPathOffered = 6,  // aux: epoch; payload: token; answers kPathWanted
  // Frames that have a sequence number.
  kHeaders = 16,    // payload: metadata; the first of a stream opens it
  kMessage = 17,    // payload: a message, eagerly
  kAnnounce = 18,   // payload: Announce, a message to be read
  kRelease = 19,    // aux 0; payload: u64, the announced id
  kHalfClose = 20,  // the client sends no more messages
  kTrailers = 21,   // payload: metadata; ends the stream
  kReset = 22,      // aux: status code, kRefused; payload: its message
  kCredit = 23,     // aux: bytes of the stream's window given back
  kGoaway = 24,     // aux: status code; stream: last one served
  kPing = 25,       // payload: u64, returned in the kPong
  kPong = 26,
  kEntry = 27,  // aux: its number from now on; payload: an entry of metadata
};

// Flags. An unknown flag is an error.
constexpr uint8_t kMoreFragments = 1;  // the next frame continues this one
constexpr uint8_t kCompressed = 2;     // of a message: compressed by gRPC
constexpr uint8_t kLast = 4;           // of a message: implies a kHalfClose
constexpr uint8_t kKnownFlags = kMoreFragments | kCompressed | kLast;

// A flag next to the status code in a server's kReset. Set if no application
// has seen the stream, so that the client may safely try again.
constexpr uint32_t kRefused = 0x80000000;
// Used in a kGoaway for the last stream, if the sender does not know the last
// stream yet. A later kGoaway names the stream.
constexpr uint32_t kLastStreamUnknown = 0xffffffff;

struct FrameHeader {
  uint32_t length = 0;  // of the payload
  FrameType type = FrameType::kAck;
  uint8_t flags = 0;
  uint32_t stream = 0;  // 0: the frame is about the session itself
  uint32_t aux = 0;
  uint64_t sequence = 0;  // 0 if the type is unsequenced, else from 1
  uint64_t ack = 0;       // the sender has received all frames up to this one
};

// Returns true if frames of this type have a sequence number. The sender keeps
// such frames until they are acknowledged, and sends them again if a path is
// lost.
bool IsSequenced(FrameType type);

// Appends the frame to `*out`. Requires payload.size() == header.length.
void AppendFrame(const FrameHeader& header, absl::string_view payload,
                 std::string* out);

// A frame inside a packet. `payload` points into the packet.
struct Frame {
  FrameHeader header;
  absl::Span<const uint8_t> payload;
};

// Removes the first frame from `*packet` and returns it. Returns
// INVALID_ARGUMENT if the frame is cut short or too long, has an unknown type
// or flag, or has a sequence number that does not fit its type.
absl::StatusOr<Frame> TakeFrame(absl::Span<const uint8_t>* packet);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_FRAME_H_
