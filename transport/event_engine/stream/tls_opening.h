// The first bytes of a connection that uses TLS.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_OPENING_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_OPENING_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/types/span.h"

namespace penstock {
namespace event_engine {

// Collects the first bytes that a client sends, up to the end of the 32-byte
// random number in TLS's ClientHello. Both ends of the connection know these
// bytes, and so does anybody who can read the network between them. By these
// bytes, a client proves at an RDMA port that it is an end of this connection.
// Not thread-safe.
class TlsOpening {
 public:
  enum class State {
    kIncomplete,
    kTls,
    kOther,  // the bytes are no ClientHello
  };

  // The size of the opening: head of a record, head of a message, version, and
  // random number.
  static constexpr size_t kBytes = 5 + 4 + 2 + 32;

  // Adds the next bytes of the stream. Ignores bytes after the opening.
  void Take(absl::Span<const uint8_t> bytes);
  State state() const { return state_; }
  // Returns the opening. Requires State::kTls.
  const std::string& bytes() const { return bytes_; }

 private:
  bool IsPossible(size_t at) const;

  State state_ = State::kIncomplete;
  std::string bytes_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_STREAM_TLS_OPENING_H_
