// The structure of an input of the session's fuzz target.

#ifndef PENSTOCK_TESTS_FUZZ_SESSION_STEPS_H_
#define PENSTOCK_TESTS_FUZZ_SESSION_STEPS_H_

#include <cstdint>
#include <string>
#include <vector>

namespace penstock {
namespace fuzz {

// Bits of the first byte.
enum SessionOptions : uint8_t {
  kIsClient = 1,   // the session is a client
  kSaysHello = 2,  // the peer sends a hello immediately
  kHasPath = 4,    // the fast path exists from the beginning
  kCanLoad = 8,    // the fast path's memory can be used in place
  kIsRpc = 16,     // the application is transport/rpc, otherwise transport/grpc
};

// The kinds of steps. In the input, a step is one byte, followed by its
// arguments.
enum Step : uint8_t {
  // Steps of the peer. Path 0 is the lifeline.
  kFrame,  // u8 path, u8 type, u8 flags, u8 stream, u16 aux, u8 length, bytes
  kOddFrame,   // the same, then i8 to add to the sequence number, u8 ack
  kBytes,      // u8 path, u8 length, bytes
  kLong,       // u8 path, u8 type, u8 flags, u8 stream, u16 length
  kAnnounced,  // u8 regions, u8 stream, u16 length; readable; see below
  kHello,
  // Steps of the links.
  kAddPath,
  kDropPath,
  kDropLifeline,
  kDeliver,  // u8 events
  kDeliverAll,
  // Steps of the application. Each begins with u8 stream.
  kFirstOfApplication,
  kAttach = kFirstOfApplication,
  kWant,
  kConsume,
  kSendHeaders,
  kSendMessage,  // u16 bytes
  kSendHalfClose,
  kSendTrailers,
  kSendReset,
  kDetach,
  kDropUnsent,
  kSessionCall,  // the stream selects the call
  kSteps
};

// Flags of kAnnounced: a region over the lifeline, a region over the fast path,
// the number of parts minus one (three bits), and an announcement over the fast
// path.
enum AnnouncedRegions : uint8_t {
  kOverLifeline = 1,
  kOverFastPath = 2,
  kPart = 4,
  kSentOverFastPath = 128,
};

std::vector<std::string> SessionSeeds();

}  // namespace fuzz
}  // namespace penstock

#endif  // PENSTOCK_TESTS_FUZZ_SESSION_STEPS_H_
