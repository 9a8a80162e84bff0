// Times some of what a session sends, for the eager limits of its paths.

#ifndef PENSTOCK_TRANSPORT_SESSION_SEND_METER_H_
#define PENSTOCK_TRANSPORT_SESSION_SEND_METER_H_

#include <cstddef>
#include <cstdint>

#include "transport/fabric/fabric.h"
#include "transport/protocol/eager_tuner.h"
#include "transport/session/tuning.h"

namespace penstock {
namespace session {

// Not thread-safe. Messages that could not be announced whatever is measured
// cost one comparison, and of the others most do; no clock is read for them.
class SendMeter {
 public:
  SendMeter(const Tuning& tuning, const fabric::Capabilities& lifeline);

  void UseFastPath(const fabric::Capabilities& path);
  void LoseFastPath();

  // Of the path that messages take.
  size_t eager_max_bytes() const { return active().eager_max_bytes(); }

  // Before a message is sent: its time, or 0 if it is not to be measured.
  uint64_t Begin(size_t bytes) {
    return bytes < timed_from_ ? 0 : BeginTimed();
  }
  // Sent so, by the active path. Nothing where `begun_ns` is 0.
  void OnCopied(uint64_t begun_ns, size_t bytes);
  void OnAnnounced(uint64_t begun_ns, size_t bytes);
  // The peer has released what was announced, alone, over the active path.
  void OnReleased(uint64_t begun_ns, size_t bytes);

 private:
  uint64_t BeginTimed();
  void Activate(const fabric::Capabilities& path);
  protocol::EagerTuner& active() { return using_fast_ ? fast_ : lifeline_; }
  const protocol::EagerTuner& active() const {
    return using_fast_ ? fast_ : lifeline_;
  }

  const Tuning tuning_;
  const fabric::Capabilities lifeline_capabilities_;
  protocol::EagerTuner lifeline_;
  protocol::EagerTuner fast_;
  bool using_fast_ = false;
  size_t timed_from_ = 0;  // bytes
  unsigned messages_ = 0;  // of this size or more
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_SEND_METER_H_
