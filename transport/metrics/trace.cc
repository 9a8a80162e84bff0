#include "transport/metrics/trace.h"

#include <pthread.h>

#include "transport/metrics/registry.h"

namespace penstock {
namespace metrics {

std::atomic<Trace*> Trace::current_{nullptr};

Trace* Trace::Begin() {
  // Ends the trace in a forked child, because the file and the thread that
  // writes it belong to the parent.
  static const int registered =
      pthread_atfork(nullptr, nullptr, [] { current_.store(nullptr); });
  (void)registered;  // fails only if there is no memory
  static auto* const trace = new Trace;
  current_.store(trace, std::memory_order_release);
  return trace;
}

void Trace::Add(const TraceEvent& event) {
  {
    base::MutexLock lock(&mu_);
    if (events_.size() < kMaxEvents) return events_.push_back(event);
  }
  CountDropped(1);
}

std::vector<TraceEvent> Trace::Take() {
  std::vector<TraceEvent> taken;
  base::MutexLock lock(&mu_);
  taken.swap(events_);
  return taken;
}

void Trace::CountDropped(uint64_t events) {
  Tally(Metric::kTraceDropped, {}).Add(events);
}

}  // namespace metrics
}  // namespace penstock
