// Removes the first acknowledgement of SETTINGS from a stream of HTTP/2 frames.

#ifndef PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_
#define PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {
namespace wire {

// Removes the peer's acknowledgement of the negotiation's SETTINGS frame. In
// the negotiation, a client sends a SETTINGS frame before gRPC's HTTP/2 sends
// its own. A stock peer acknowledges both frames, and gRPC would take the first
// acknowledgement for the one of its own frame. Not thread-safe.
class SettingsAckFilter {
 public:
  // Filters the next bytes of the stream, and returns the bytes to pass on.
  // Buffers an incomplete frame header until the rest arrives.
  std::string Pass(absl::string_view bytes);
  // Returns true once the acknowledgement has been removed. Pass() then returns
  // all bytes unchanged.
  bool done() const { return done_; }

 private:
  absl::string_view PassPayload(absl::string_view bytes, std::string* out);
  absl::string_view PassHeader(absl::string_view bytes, std::string* out);

  bool done_ = false;
  std::string header_;  // of the next frame, received so far
  size_t payload_left_ = 0;
};

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_
