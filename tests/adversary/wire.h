// A second implementation of docs/protocol.md, written from the document. The
// encoder shares no code with the product, and can produce bytes that the
// product never sends.

#ifndef PENSTOCK_TESTS_ADVERSARY_WIRE_H_
#define PENSTOCK_TESTS_ADVERSARY_WIRE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::adversary {

// Returns the number in little-endian order.
std::string U8(uint64_t number);
std::string U16(uint64_t number);
std::string U32(uint64_t number);
std::string U64(uint64_t number);
uint64_t Number(absl::string_view bytes);

// Types of units. Numbers instead of enumerations, because an attack may use
// any value.
namespace unit {
constexpr uint8_t kPacket = 1;
constexpr uint8_t kDoorbell = 2;
constexpr uint8_t kRead = 3;
constexpr uint8_t kReadData = 4;
constexpr uint8_t kReadError = 5;
constexpr uint8_t kPush = 6;
constexpr uint8_t kPushVoid = 7;
constexpr uint64_t kHeaderBytes = 16;
constexpr uint64_t kMaxPacketBytes = 64 * 1024;
// A bit in the key of a region whose first chunk is pushed.
constexpr uint64_t kPushed = uint64_t{1} << 63;
}  // namespace unit

namespace type {
constexpr uint8_t kHello = 1;
constexpr uint8_t kPathReady = 2;
constexpr uint8_t kPathLost = 3;
constexpr uint8_t kAck = 4;
constexpr uint8_t kPathWanted = 5;
constexpr uint8_t kPathOffered = 6;
constexpr uint8_t kHeaders = 16;
constexpr uint8_t kMessage = 17;
constexpr uint8_t kAnnounce = 18;
constexpr uint8_t kRelease = 19;
constexpr uint8_t kHalfClose = 20;
constexpr uint8_t kTrailers = 21;
constexpr uint8_t kReset = 22;
constexpr uint8_t kCredit = 23;
constexpr uint8_t kGoaway = 24;
constexpr uint8_t kPing = 25;
constexpr uint8_t kPong = 26;
constexpr uint8_t kEntry = 27;
constexpr uint8_t kLastKnown = 27;
}  // namespace type

constexpr uint8_t kMoreFragments = 1;
constexpr size_t kFrameHeaderBytes = 32;
constexpr size_t kMaxFramePayload = 16352;
constexpr size_t kMaxJoinedBytes = 16 << 20;

// The newest version of the protocol, and the peers' default.
constexpr uint8_t kNewest = 2;

// Returns the preface and SETTINGS of a client that speaks all versions up to
// `newest`, and the SETTINGS of a server that has chosen a version.
std::string ClientPreface(uint8_t newest = kNewest);
std::string ServerSettings(uint8_t chosen = kNewest);

// Returns the header of a unit, and the whole unit.
std::string UnitHeader(uint64_t length, uint8_t type, uint64_t cookie);
std::string Unit(uint8_t type, uint64_t cookie, absl::string_view body);

struct Frame {
  uint8_t type = 0;
  uint8_t flags = 0;
  uint16_t zero = 0;
  uint32_t stream = 0;
  uint32_t aux = 0;
  // Fields that the sending peer fills in, unless the test has set them.
  absl::optional<uint64_t> sequence;
  absl::optional<uint64_t> ack;
  absl::optional<uint32_t> length;
  std::string payload;
};

Frame FrameOf(uint8_t type, uint32_t stream, absl::string_view payload = "",
              uint32_t aux = 0);
bool IsSequenced(uint8_t type);
// Encodes the frame. Unset fields become 0; an unset length becomes the
// payload's length.
std::string Encode(const Frame& frame);
// Removes the first frame from `bytes`. Returns nothing if there is none.
absl::optional<Frame> TakeFrame(absl::string_view* bytes);

struct Offer {
  bool usable = false;
  std::string name;
  std::string data;
};

struct Hello {
  std::string token;
  uint32_t window = 4 << 20;
  uint32_t max_streams = UINT32_MAX;
  std::vector<Offer> offers;
};

std::string Encode(const Hello& hello);
absl::optional<Hello> ParseHello(absl::string_view bytes);

// Returns the announcement of a message of `length` bytes on the lifeline, as
// region `key`.
std::string Announcement(uint64_t id, uint64_t length, uint64_t key);
// Returns the same announcement in the encoding of version 1.
std::string AnnouncementV1(uint64_t id, uint64_t length, uint64_t key);
// Returns a part of a region, a region, and an announcement of regions.
std::string Part(uint64_t key, uint64_t offset, uint64_t length);
std::string Region(uint32_t path, const std::vector<std::string>& parts);
std::string AnnouncementOf(uint64_t id, uint64_t length,
                           const std::vector<std::string>& regions);

// Metadata entries, with the numbers of the keys that attacks use.
namespace key {
constexpr uint8_t kPath = 1;
constexpr uint8_t kAuthority = 2;
constexpr uint8_t kStatus = 4;
constexpr uint8_t kAcceptEncoding = 9;
constexpr uint8_t kGrpcStatus = 10;
constexpr uint8_t kTimeout = 11;
constexpr uint8_t kGrpcMessage = 15;
constexpr uint8_t kLast = 20;
}  // namespace key
constexpr uint8_t kFirstPair = 128;
constexpr uint8_t kLastPair = 134;
constexpr uint8_t kFirstEntry = 192;

std::string Known(uint8_t key, absl::string_view value);
std::string Literal(absl::string_view key, absl::string_view value);
// Return the minimal valid metadata of a client and of a server.
std::string RequestMetadata(absl::string_view path);
std::string ResponseMetadata();

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_WIRE_H_
