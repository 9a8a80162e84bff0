// The frame: what a session is made of. docs/protocol.md shows the bytes.

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

// The version of all that follows the negotiation, which agrees on it.
constexpr uint8_t kVersion = 1;

constexpr size_t kFrameHeaderBytes = 32;
// A frame, header included, fits into one message of any fabric; what is
// longer is sent as fragments.
constexpr size_t kMaxFrameBytes = 16 * 1024;
constexpr size_t kMaxFramePayload = kMaxFrameBytes - kFrameHeaderBytes;

enum class FrameType : uint8_t {
  // About the session: unsequenced, over the lifeline only.
  // Each attempt at a path has a number, its epoch.
  kHello = 1,        // payload: Hello
  kPathReady = 2,    // aux: epoch; payload: name of the fabric, for people
  kPathLost = 3,     // aux: epoch; payload: the reason
  kAck = 4,          // nothing but the header's acknowledgement; any path
  kPathWanted = 5,   // aux: epoch that is to begin; from the client
  kPathOffered = 6,  // aux: epoch; payload: token; answers kPathWanted
  // Sequenced.
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

// Flags. An unknown one is an error.
constexpr uint8_t kMoreFragments = 1;  // the next frame goes on with this one
constexpr uint8_t kCompressed = 2;     // kMessage, kAnnounce: by gRPC
constexpr uint8_t kLast = 4;           // the same: a kHalfClose comes with it
constexpr uint8_t kKnownFlags = kMoreFragments | kCompressed | kLast;

// Beside the status code of a kReset from a server: no application has seen the
// stream, so whoever began it may safely do so again.
constexpr uint32_t kRefused = 0x80000000;
// As the last stream of a kGoaway: another one will say which it is.
constexpr uint32_t kLastStreamUnknown = 0xffffffff;

struct FrameHeader {
  uint32_t length = 0;  // of the payload
  FrameType type = FrameType::kAck;
  uint8_t flags = 0;
  uint32_t stream = 0;  // 0: the session itself
  uint32_t aux = 0;
  uint64_t sequence = 0;  // 0 if the type is unsequenced, else from 1
  uint64_t ack = 0;       // every frame up to this one has arrived
};

// Whether frames of this type are numbered, kept and resent.
bool IsSequenced(FrameType type);

// Appends the frame to `out`. Needs payload.size() == header.length.
void AppendFrame(const FrameHeader& header, absl::string_view payload,
                 std::string* out);

// A frame within a message; `payload` points into the message.
struct Frame {
  FrameHeader header;
  absl::Span<const uint8_t> payload;
};

// Takes the first frame off `message`. INVALID_ARGUMENT where it is cut short,
// of an unknown type or flag, too long, or where the sequence number does not
// fit the type.
absl::StatusOr<Frame> TakeFrame(absl::Span<const uint8_t>* message);

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_FRAME_H_
