#include "transport/metrics/table.h"

#include <algorithm>
#include <cstddef>

#include "transport/metrics/histogram.h"

namespace penstock {
namespace metrics {
namespace {

constexpr Label kOfRole[] = {Label::kRole};
constexpr Label kOfRoleAndEnd[] = {Label::kRole, Label::kEnd};
constexpr Label kOfRoleAndFabric[] = {Label::kRole, Label::kFabric};
constexpr Label kOfDecision[] = {Label::kRole, Label::kPath, Label::kReason};
constexpr Label kOfFabric[] = {Label::kFabric};
constexpr Label kOfRefusal[] = {Label::kRefusal};
constexpr Label kOfMessage[] = {Label::kFabric, Label::kKind,
                                Label::kDirection};
constexpr Label kOfBudget[] = {Label::kBudget};
constexpr Label kOfPool[] = {Label::kPool};
constexpr Label kOfStatus[] = {Label::kStatus};

constexpr Row Counter(Metric metric, const char* name, Unit unit,
                      absl::Span<const Label> labels, const char* help) {
  return {metric, name, Type::kCounter, unit, Merge::kSum, labels, help, false};
}
constexpr Row Gauge(Metric metric, const char* name, Unit unit,
                    absl::Span<const Label> labels, const char* help,
                    Merge merge = Merge::kSum) {
  return {metric, name, Type::kGauge, unit, merge, labels, help, false};
}
constexpr Row Limit(Metric metric, const char* name, Unit unit,
                    absl::Span<const Label> labels, const char* help,
                    Merge merge = Merge::kSum) {
  return {metric, name, Type::kGauge, unit, merge, labels, help, true};
}
constexpr Row Times(Metric metric, const char* name,
                    absl::Span<const Label> labels, const char* help) {
  return {metric, name, Type::kHistogram, Unit::kSeconds, Merge::kSum, labels,
          help,   false};
}

constexpr Row kTable[] = {
    Counter(Metric::kSessionsStarted, "penstock_sessions_started_total",
            Unit::kNumber, kOfRole,
            "Connections on which both sides spoke Penstock."),
    Counter(Metric::kSessionsEnded, "penstock_sessions_ended_total",
            Unit::kNumber, kOfRoleAndEnd,
            "Sessions that have ended, by cause."),
    Gauge(Metric::kSessions, "penstock_sessions", Unit::kNumber,
          kOfRoleAndFabric, "Open sessions, by their present path."),
    Counter(Metric::kPathDecisions, "penstock_path_decisions_total",
            Unit::kNumber, kOfDecision,
            "Paths that connections chose, at first or after a loss, and why "
            "no better one."),
    Counter(Metric::kPathsLost, "penstock_paths_lost_total", Unit::kNumber,
            kOfFabric,
            "Fast paths that broke under a session, which went on over tcp."),
    Counter(Metric::kPathsRegained, "penstock_paths_regained_total",
            Unit::kNumber, kOfFabric,
            "Fast paths that sessions got back after a loss."),
    Counter(Metric::kRefused, "penstock_connections_refused_total",
            Unit::kNumber, kOfRefusal,
            "Connections that were turned away before a session began."),
    Gauge(Metric::kHalfOpen, "penstock_negotiations", Unit::kNumber, {},
          "Connections of servers that have no path yet."),
    Limit(Metric::kHalfOpenLimit, "penstock_negotiations_limit", Unit::kNumber,
          {},
          "Limit of connections in negotiation; further ones are served over "
          "HTTP/2.",
          Merge::kMax),
    Counter(Metric::kStreamsStarted, "penstock_streams_started_total",
            Unit::kNumber, kOfRole, "RPCs that began."),
    Counter(Metric::kStreamsReset, "penstock_streams_reset_total",
            Unit::kNumber, kOfRole,
            "RPCs that ended without the server's status: cancelled, refused, "
            "or cut off."),
    Gauge(Metric::kStreams, "penstock_streams", Unit::kNumber, kOfRole,
          "RPCs in progress."),
    Times(Metric::kClientStreamSeconds,
          "penstock_client_stream_duration_seconds", kOfFabric,
          "Time from a client's first frame to the server's status, of a "
          "sample: a connection's first 128 RPCs, then one in 8."),
    Counter(Metric::kMessages, "penstock_messages_total", Unit::kNumber,
            kOfMessage, "Messages of applications."),
    Counter(Metric::kMessageBytes, "penstock_message_bytes_total", Unit::kBytes,
            kOfMessage, "Bytes of messages of applications, without headers."),
    Times(Metric::kAnnouncedSeconds,
          "penstock_announced_message_duration_seconds", kOfFabric,
          "Time from a message's announcement until the peer has released "
          "it, at the sender."),
    Gauge(Metric::kAnnouncedUnreleased, "penstock_announced_messages",
          Unit::kNumber, {},
          "Announced messages that peers have not released."),
    Limit(Metric::kEagerLimitMin, "penstock_eager_limit_min_bytes",
          Unit::kBytes, kOfFabric,
          "Size limit of messages that are sent eagerly: the lowest of the "
          "open sessions.",
          Merge::kMin),
    Limit(Metric::kEagerLimitMax, "penstock_eager_limit_max_bytes",
          Unit::kBytes, kOfFabric,
          "Size limit of messages that are sent eagerly: the highest of the "
          "open sessions.",
          Merge::kMax),
    Limit(Metric::kChunkMin, "penstock_chunk_min_bytes", Unit::kBytes,
          kOfFabric,
          "Size of the pieces in which announced messages are read: the "
          "smallest of the open sessions.",
          Merge::kMin),
    Limit(Metric::kChunkMax, "penstock_chunk_max_bytes", Unit::kBytes,
          kOfFabric,
          "Size of the pieces in which announced messages are read: the "
          "largest of the open sessions.",
          Merge::kMax),
    Counter(Metric::kCreditStalls, "penstock_credit_stalls_total",
            Unit::kNumber, kOfFabric,
            "How often a path had no room for frames to send."),
    Counter(Metric::kCreditStallSeconds, "penstock_credit_stall_seconds_total",
            Unit::kSeconds, kOfFabric,
            "Time for which frames waited for room on a path."),
    Counter(
        Metric::kWindowStalls, "penstock_window_stalls_total", Unit::kNumber,
        kOfFabric,
        "Messages that waited because the peer left earlier messages unread."),
    Gauge(Metric::kBudgetUsed, "penstock_budget_used_bytes", Unit::kBytes,
          kOfBudget, "Memory that open sessions hold for their peers."),
    Limit(Metric::kBudgetLimit, "penstock_budget_limit_bytes", Unit::kBytes,
          kOfBudget,
          "Limit of the memory that open sessions hold for their peers."),
    Gauge(Metric::kPoolUsed, "penstock_pool_used_bytes", Unit::kBytes, kOfPool,
          "Memory for messages that is in use."),
    Gauge(Metric::kPoolReserved, "penstock_pool_reserved_bytes", Unit::kBytes,
          kOfPool, "Memory for messages that was taken from the system."),
    Limit(Metric::kPoolLimit, "penstock_pool_limit_bytes", Unit::kBytes,
          kOfPool, "Limit of the memory for messages."),
    Counter(Metric::kCacheHits, "penstock_registration_cache_hits_total",
            Unit::kNumber, {},
            "Uses of memory that was registered with an RDMA device already."),
    Counter(Metric::kCacheMisses, "penstock_registration_cache_misses_total",
            Unit::kNumber, {},
            "Uses of memory that had to be registered first."),
    Counter(Metric::kCacheEvictions,
            "penstock_registration_cache_evictions_total", Unit::kNumber, {},
            "Registrations that ended to make room for others."),
    Gauge(Metric::kCacheUsed, "penstock_registration_cache_used_bytes",
          Unit::kBytes, {}, "Memory that stays registered."),
    Limit(Metric::kCacheLimit, "penstock_registration_cache_limit_bytes",
          Unit::kBytes, {},
          "Limit of the memory that stays registered "
          "(PENSTOCK_VERBS_CACHE_MIB)."),
    Counter(Metric::kCompletionErrors, "penstock_work_completion_errors_total",
            Unit::kNumber, kOfStatus,
            "Errors that RDMA devices reported, the first of each queue pair."),
    Counter(Metric::kLogLinesSuppressed, "penstock_log_lines_suppressed_total",
            Unit::kNumber, {},
            "Lines dropped from the log: there were too many, or nobody read "
            "them."),
    Gauge(Metric::kTasksAside, "penstock_tasks_aside", Unit::kNumber, {},
          "Tasks that wait because a peer may make them slow.", Merge::kMax),
    Counter(Metric::kTraceDropped, "penstock_trace_events_dropped_total",
            Unit::kNumber, {},
            "Events that are missing in the trace (PENSTOCK_TRACE): too many, "
            "or the file is full."),
};

constexpr int kRows = static_cast<int>(Metric::kCount);

constexpr bool IsInOrder() {
  for (int i = 0; i < kRows; ++i) {
    if (static_cast<int>(kTable[i].metric) != i) return false;
  }
  return true;
}
static_assert(sizeof kTable / sizeof *kTable == kRows && IsInOrder(),
              "each metric has its row, in the order of metric.h");

}  // namespace

int Row::series() const {
  int count = 1;
  for (const Label label : labels)
    count *= static_cast<int>(ValuesOf(label).size());
  return count;
}

int Row::cells() const {
  return type == Type::kHistogram ? Histogram::kBuckets + 1 : 1;
}

absl::Span<const Row> Table() { return kTable; }

const Row& RowOf(Metric metric) { return kTable[static_cast<int>(metric)]; }

absl::string_view TypeName(Type type) {
  switch (type) {
    case Type::kCounter:
      return "counter";
    case Type::kGauge:
      return "gauge";
    case Type::kHistogram:
      return "histogram";
  }
  return "untyped";
}

std::vector<absl::string_view> LabelValues(const Row& row, int series) {
  std::vector<absl::string_view> values(row.labels.size());
  for (size_t i = row.labels.size(); i-- > 0;) {
    const absl::Span<const absl::string_view> all = ValuesOf(row.labels[i]);
    const int count = static_cast<int>(all.size());
    values[i] = all[static_cast<size_t>(series % count)];
    series /= count;
  }
  return values;
}

}  // namespace metrics
}  // namespace penstock
