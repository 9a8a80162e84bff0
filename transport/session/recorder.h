// Reports a session's streams and messages to a trace and to tracers.

#ifndef PENSTOCK_TRANSPORT_SESSION_RECORDER_H_
#define PENSTOCK_TRANSPORT_SESSION_RECORDER_H_

#include <cstdint>

#include "transport/metrics/labels.h"
#include "transport/metrics/trace.h"
#include "transport/session/config.h"

namespace penstock {
namespace session {

// Records the events of one session in the process's trace. Costs a comparison
// and a no-op instruction while there is no trace. Not thread-safe.
class Recorder {
 public:
  explicit Recorder(const Config& config);

  // Returns the session's number within the process.
  uint64_t connection() const { return connection_; }

  // Returns the current time for trace events, or 0 if there is no trace.
  uint64_t Begin() const {
    return metrics::Trace::Current() == nullptr ? 0 : Now();
  }

  void OnStreamBegun(uint32_t stream) const;
  // Records the end of a stream. `begun_ns` is 0 if the start was not timed.
  void OnStreamEnded(uint32_t stream, uint64_t begun_ns, bool has_status,
                     metrics::Fabric fabric) const;
  void OnAnnounced(uint32_t stream, uint64_t bytes) const;
  void OnReleased(uint32_t stream, uint64_t id, uint64_t bytes,
                  uint64_t announced_ns, metrics::Fabric fabric) const;
  void OnRead(uint32_t stream, uint64_t id, uint64_t bytes, uint64_t begun_ns,
              metrics::Fabric fabric) const;

 private:
  uint64_t Now() const {
    return config_.tuning.now_ns == nullptr ? 0 : config_.tuning.now_ns();
  }
  void Add(metrics::TraceEvent event) const;

  const Config& config_;
  const uint64_t connection_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_RECORDER_H_
