// The boundaries of TLS records in a stream.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_RECORDS_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_RECORDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/types/span.h"

namespace penstock {
namespace event_engine {

// Follows the records of one direction of TLS (RFC 8446, section 5.1): u8 type,
// u16 version, u16 length, and then `length` bytes. Not thread-safe.
//
// No type of a record equals the first byte of a mark (packet.h). Between two
// records, a receiver can therefore distinguish a mark from the stream's bytes.
class TlsRecords {
 public:
  // Returns true between two records.
  bool at_boundary() const { return head_ == 0 && body_ == 0; }
  // Returns the type of the present record. Between two records, returns the
  // type of the last one.
  uint8_t type() const { return type_; }
  // Follows the first bytes, up to the end of the present record. Returns their
  // number, at most bytes.size().
  size_t TakeRecord(absl::Span<const uint8_t> bytes);
  // Follows all bytes.
  void Take(absl::Span<const uint8_t> bytes);

 private:
  uint8_t type_ = 0;
  size_t head_ = 0;  // the bytes of the head that have come
  size_t body_ = 0;  // the bytes of the record that are still to come
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_RECORDS_H_
