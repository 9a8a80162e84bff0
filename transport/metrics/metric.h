// The names of the metrics in code. table.cc has a row for each.

#ifndef PENSTOCK_TRANSPORT_METRICS_METRIC_H_
#define PENSTOCK_TRANSPORT_METRICS_METRIC_H_

namespace penstock {
namespace metrics {

// In the order in which they are shown.
enum class Metric {
  // Connections.
  kSessionsStarted,
  kSessionsEnded,
  kSessions,
  kPathDecisions,
  kPathsLost,
  kPathsRegained,
  kRefused,
  kHalfOpen,
  kHalfOpenLimit,
  // Streams.
  kStreamsStarted,
  kStreamsReset,
  kStreams,
  kClientStreamSeconds,
  // Messages.
  kMessages,
  kMessageBytes,
  kAnnouncedSeconds,
  kAnnouncedUnreleased,
  kEagerLimitMin,
  kEagerLimitMax,
  kChunkMin,
  kChunkMax,
  // What waits, and for how long.
  kCreditStalls,
  kCreditStallSeconds,
  kWindowStalls,
  kBudgetUsed,
  kBudgetLimit,
  // Memory.
  kPoolUsed,
  kPoolReserved,
  kPoolLimit,
  kCacheHits,
  kCacheMisses,
  kCacheEvictions,
  kCacheUsed,
  kCacheLimit,
  // Devices, and the process.
  kCompletionErrors,
  kLogLinesSuppressed,
  kTasksAside,
  kTraceDropped,
  kCount,  // of them; none itself
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_METRIC_H_
