// The trace: one event for each RPC and each announced message.

#ifndef PENSTOCK_TRANSPORT_METRICS_TRACE_H_
#define PENSTOCK_TRANSPORT_METRICS_TRACE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/base/mutex.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace metrics {

// An event with a begin and an end.
struct TraceEvent {
  enum class Kind {
    kStream,     // an RPC, from its first frame until the session forgets it
    kAnnounced,  // a message, from its announcement to its release
    kRead,       // a message at the receiver, until it has been read
  };
  Kind kind = Kind::kStream;
  Role role = Role::kClient;
  Fabric fabric = Fabric::kTcp;
  bool ok = true;           // of a stream: it ended with a status
  uint64_t connection = 0;  // a number within the process
  uint32_t stream = 0;
  uint64_t id = 0;     // of a message, within the connection and kind
  uint64_t bytes = 0;  // of a message
  uint64_t begun_ns = 0;
  uint64_t ended_ns = 0;
};

// The queue of events for the writer. Holds up to 65,536 events. Drops and
// counts further events, so that nobody waits. Thread-safe.
class Trace {
 public:
  static constexpr size_t kMaxEvents = 64 * 1024;

  // Returns the process's trace. Returns null if no trace is wanted, which is
  // the usual case.
  static Trace* Current() { return current_.load(std::memory_order_acquire); }
  // Begins the trace of this process, once and irrevocably. The child of a fork
  // has none.
  static Trace* Begin();

  Trace() = default;
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  void Add(const TraceEvent& event);
  // Removes and returns all events, in the order of their ends.
  std::vector<TraceEvent> Take();
  void CountDropped(uint64_t events);

 private:
  static std::atomic<Trace*> current_;

  base::Mutex mu_;
  std::vector<TraceEvent> events_ ABSL_GUARDED_BY(mu_);
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_TRACE_H_
