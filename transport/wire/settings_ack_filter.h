// Removes the first acknowledgement of SETTINGS from a stream of HTTP/2 frames.

#ifndef PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_
#define PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {
namespace wire {

// A client whose peer is a stock one has sent a SETTINGS frame in the
// negotiation, before gRPC's HTTP/2 sends its own. The peer acknowledges both,
// and gRPC would take the first acknowledgement for that of its own frame. Not
// thread-safe.
class SettingsAckFilter {
 public:
  // Takes the bytes that come next in the stream, and returns those to pass on.
  // Keeps back the header of a frame until it is complete.
  std::string Pass(absl::string_view bytes);
  // Whether the acknowledgement has been removed. Pass() then returns all bytes
  // as they are.
  bool done() const { return done_; }

 private:
  absl::string_view PassPayload(absl::string_view bytes, std::string* out);
  absl::string_view PassHeader(absl::string_view bytes, std::string* out);

  bool done_ = false;
  std::string header_;  // of the next frame, as far as it has come
  size_t payload_left_ = 0;
};

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_
