// Times a sample of the messages that a session sends, to tune the eager limits
// of its paths.

#ifndef PENSTOCK_TRANSPORT_SESSION_SEND_METER_H_
#define PENSTOCK_TRANSPORT_SESSION_SEND_METER_H_

#include <cstddef>
#include <cstdint>

#include "transport/fabric/fabric.h"
#include "transport/protocol/eager_tuner.h"
#include "transport/session/tuning.h"

namespace penstock {
namespace session {

// A timer of sampled messages. Most messages cost no reading of a clock. A
// message below any possible eager limit costs only one comparison. Not
// thread-safe.
class SendMeter {
 public:
  SendMeter(const Tuning& tuning, const fabric::Capabilities& lifeline);

  void UseFastPath(const fabric::Capabilities& path);
  void LoseFastPath();

  // Returns the eager limit of the active path.
  size_t eager_max_bytes() const { return active().eager_max_bytes(); }

  // Begins to time a message that is about to be sent. Returns the time, or 0
  // if the message is not sampled.
  uint64_t Begin(size_t bytes) {
    return bytes < timed_from_ ? 0 : BeginTimed();
  }
  // Record how a message was sent over the active path. Do nothing if
  // `begun_ns` is 0.
  void OnCopied(uint64_t begun_ns, size_t bytes);
  void OnAnnounced(uint64_t begun_ns, size_t bytes);
  // Records the release of a message that was announced over the active path.
  // Call only if no other message was exposed meanwhile.
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
