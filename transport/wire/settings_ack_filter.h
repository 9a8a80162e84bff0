// Takes the first acknowledgement of SETTINGS out of a stream of HTTP/2 frames.

#ifndef PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_
#define PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace penstock {
namespace wire {

// A client that negotiated in vain has sent a SETTINGS frame of its own before
// HTTP/2 sends the real one. The peer acknowledges both, and gRPC would take
// the first for its own. Not thread-safe.
class SettingsAckFilter {
 public:
  // What to pass on after `bytes` came in; less than a frame's header may wait
  // for the rest of it.
  std::string Pass(absl::string_view bytes);
  // From here on everything is passed on as it is.
  bool done() const { return done_; }

 private:
  absl::string_view PassPayload(absl::string_view bytes, std::string* out);
  absl::string_view PassHeader(absl::string_view bytes, std::string* out);

  bool done_ = false;
  std::string header_;  // as far as it has come
  size_t payload_left_ = 0;
};

}  // namespace wire
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_WIRE_SETTINGS_ACK_FILTER_H_
