// Reports a session's counters and state to metrics and to tools.

#include "transport/session/session.h"

namespace penstock {
namespace session {

using metrics::Metric;

namespace {

void CollectTraffic(const Counters& counters, metrics::Snapshot* snapshot) {
  for (int i = 0; i < metrics::kFabrics; ++i) {
    const auto fabric = static_cast<metrics::Fabric>(i);
    for (int k = 0; k < metrics::kKinds; ++k) {
      for (int d = 0; d < metrics::kDirections; ++d) {
        const auto kind = static_cast<metrics::Kind>(k);
        const auto direction = static_cast<metrics::Direction>(d);
        const Counters::Traffic& traffic = counters.traffic[i][k][d];
        snapshot->Add(Metric::kMessages, {fabric, kind, direction},
                      traffic.messages);
        snapshot->Add(Metric::kMessageBytes, {fabric, kind, direction},
                      traffic.bytes);
      }
    }
    snapshot->Add(Metric::kClientStreamSeconds, {fabric},
                  counters.client_streams[i]);
    snapshot->Add(Metric::kAnnouncedSeconds, {fabric}, counters.announced[i]);
    snapshot->Add(Metric::kCreditStalls, {fabric}, counters.credit_stalls[i]);
    snapshot->Add(Metric::kCreditStallSeconds, {fabric},
                  counters.credit_stall_ns[i]);
    snapshot->Add(Metric::kWindowStalls, {fabric}, counters.window_stalls[i]);
    snapshot->Add(Metric::kPathsLost, {fabric}, counters.paths_lost[i]);
    snapshot->Add(Metric::kPathsRegained, {fabric}, counters.paths_regained[i]);
  }
}

void DescribeFabric(const Counters& counters, int i,
                    metrics::ConnectionInfo* info) {
  for (int k = 0; k < metrics::kKinds; ++k) {
    for (int d = 0; d < metrics::kDirections; ++d) {
      info->traffic[k][d].messages += counters.traffic[i][k][d].messages;
      info->traffic[k][d].bytes += counters.traffic[i][k][d].bytes;
    }
  }
  info->paths_lost += counters.paths_lost[i];
  info->paths_regained += counters.paths_regained[i];
  info->credit_stalls += counters.credit_stalls[i];
  info->credit_stall_ns += counters.credit_stall_ns[i];
  info->window_stalls += counters.window_stalls[i];
  info->client_streams.Add(counters.client_streams[i]);
  info->announced.Add(counters.announced[i]);
}

}  // namespace

void Session::Collect(metrics::Snapshot* snapshot) const {
  snapshot->Add(Metric::kSessionsStarted, {config_.role()}, 1);
  snapshot->Add(Metric::kStreamsStarted, {config_.role()},
                counters_.streams_started);
  snapshot->Add(Metric::kStreamsReset, {config_.role()},
                counters_.streams_reset);
  CollectTraffic(counters_, snapshot);
  if (!closed()) CollectState(snapshot);
}

bool Session::Describe(metrics::ConnectionInfo* info) const {
  const PathDescription path = path_.Describe();
  info->id = recorder_.connection();
  info->role = config_.role();
  info->path = path.fabric;
  info->detail = path.detail;
  info->reason = path.reason;
  info->eager_max_bytes = path.eager_max_bytes;
  info->chunk_bytes = path.chunk_bytes;
  info->messages_sent = counters_.messages_sent();
  info->messages_received = counters_.messages_received();
  info->bytes_sent = counters_.bytes_sent();
  info->bytes_received = counters_.bytes_received();
  info->announced_unreleased = streams_.output().exposed();
  info->streams_started = counters_.streams_started;
  info->streams_reset = counters_.streams_reset;
  info->streams = streams_.size();
  for (int i = 0; i < metrics::kFabrics; ++i)
    DescribeFabric(counters_, i, info);
  return !closed();
}

// Adds the gauges of a session that is not over.
void Session::CollectState(metrics::Snapshot* snapshot) const {
  const metrics::Fabric fabric = counters_.sending;
  snapshot->Add(Metric::kSessions, {config_.role(), fabric}, 1);
  snapshot->Add(Metric::kStreams, {config_.role()}, streams_.size());
  snapshot->Add(Metric::kAnnouncedUnreleased, {}, streams_.output().exposed());
  const uint64_t eager = streams_.output().eager_max_bytes();
  snapshot->Add(Metric::kEagerLimitMin, {fabric}, eager);
  snapshot->Add(Metric::kEagerLimitMax, {fabric}, eager);
  const uint64_t chunk = streams_.input().chunk_bytes(path_.carrier());
  snapshot->Add(Metric::kChunkMin, {fabric}, chunk);
  snapshot->Add(Metric::kChunkMax, {fabric}, chunk);
  const BudgetLimits& limits = config_.budget;
  const auto add = [snapshot](metrics::Budget kind, uint64_t used,
                              uint64_t limit) {
    snapshot->Add(Metric::kBudgetUsed, {kind}, used);
    snapshot->Add(Metric::kBudgetLimit, {kind}, limit);
  };
  add(metrics::Budget::kReplies, budget_.used(Budget::Kind::kReplies),
      limits.replies_bytes);
  add(metrics::Budget::kAnswers, budget_.used(Budget::Kind::kAnswers),
      limits.answers_bytes);
  add(metrics::Budget::kOutbox, budget_.used(Budget::Kind::kOutbox),
      limits.outbox_bytes);
  add(metrics::Budget::kUnread, budget_.used(Budget::Kind::kUnread),
      limits.unread_bytes);
  add(metrics::Budget::kRead, streams_.input().read_bytes(),
      config_.read_budget);
}

}  // namespace session
}  // namespace penstock
