// The units of the tcp fabric: the encoding of packets and one-sided reads on
// the stream. docs/protocol.md has the bytes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_FRAMING_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_FRAMING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace fabric {
namespace tcp {

enum class UnitType : uint8_t {
  kPacket = 1,     // body: a packet
  kDoorbell = 2,   // no body
  kRead = 3,       // body: key u64, offset u64, length u32
  kReadData = 4,   // body: the bytes
  kReadError = 5,  // no body: no such region, or outside it
  kPush = 6,       // body: the first chunk of a region
  kPushVoid = 7,   // no body: the region has been withdrawn
};

// A header is: length of the body u32, type u8, three zero bytes, cookie u64.
// In a read and its answer, the cookie is the reader's number of the read. In a
// push, the cookie is the region's key.
constexpr size_t kUnitHeaderBytes = 16;
constexpr size_t kReadBodyBytes = 20;
constexpr size_t kMaxPacketBytes = 64 * 1024;
constexpr size_t kMaxReadBytes = 1024 * 1024;
// The initial chunk size of reads, and the limit of pushed bytes of a region,
// in bytes.
constexpr size_t kChunkBytes = 256 * 1024;
// Caps the bytes of replies to reads, and of pushes, that are queued for one
// write. Two chunks keep the pipe full. A packet that is sent meanwhile waits
// behind these bytes.
constexpr size_t kServedBytesPerWrite = 2 * kChunkBytes;

struct UnitHeader {
  uint32_t length = 0;
  UnitType type = UnitType::kPacket;
  uint64_t cookie = 0;
};

void AppendUnitHeader(const UnitHeader& header, std::string* out);

// Parses kUnitHeaderBytes bytes. Returns INVALID_ARGUMENT for an unknown type,
// and for a length that the type cannot have.
absl::StatusOr<UnitHeader> ParseUnitHeader(const uint8_t* in);

struct ReadRequest {
  uint64_t key = 0;
  uint64_t offset = 0;
  uint32_t length = 0;
};

void AppendReadRequest(const ReadRequest& request, std::string* out);
// Parses kReadBodyBytes bytes. Does not check the numbers.
ReadRequest ParseReadRequest(const uint8_t* in);

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_FRAMING_H_
