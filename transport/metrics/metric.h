// The names of the metrics in code. table.cc has a row for each.

#ifndef PENSTOCK_TRANSPORT_METRICS_METRIC_H_
#define PENSTOCK_TRANSPORT_METRICS_METRIC_H_

namespace penstock {
namespace metrics {

// All metrics, in the order of the output.
enum class Metric {
  // Metrics of connections.
  kSessionsStarted,
  kSessionsEnded,
  kSessions,
  kPathDecisions,
  kPathsLost,
  kPathsRegained,
  kRefused,
  kHalfOpen,
  kHalfOpenLimit,
  // Metrics of streams.
  kStreamsStarted,
  kStreamsReset,
  kStreams,
  kClientStreamSeconds,
  // Metrics of messages.
  kMessages,
  kMessageBytes,
  kAnnouncedSeconds,
  kAnnouncedUnreleased,
  kEagerLimitMin,
  kEagerLimitMax,
  kChunkMin,
  kChunkMax,
  // Metrics of waits and their durations.
  kCreditStalls,
  kCreditStallSeconds,
  kWindowStalls,
  kBudgetUsed,
  kBudgetLimit,
  // Metrics of memory.
  kPoolUsed,
  kPoolReserved,
  kPoolLimit,
  kCacheHits,
  kCacheMisses,
  kCacheEvictions,
  kCacheUsed,
  kCacheLimit,
  // Metrics of devices and of the process.
  kCompletionErrors,
  kLogLinesSuppressed,
  kTasksAside,
  kTraceDropped,
  kCount,  // the number of metrics, not a metric
};

}  // namespace metrics
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_METRICS_METRIC_H_
