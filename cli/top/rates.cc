#include "cli/top/rates.h"

#include <algorithm>

namespace penstock::cli {
namespace {

constexpr char kCallTime[] = "penstock_client_stream_duration_seconds";
constexpr const char* kPaths[] = {"shm", "verbs", "tcp", "other"};
constexpr double kMinSeconds = 1e-3;

}  // namespace

Rates::Rates(const Sample& before, const Sample& after)
    : before_(before),
      after_(after),
      seconds_(std::max(kMinSeconds,
                        absl::ToDoubleSeconds(after.time - before.time))) {
  for (const ConnectionSample& each : before.connections) {
    connections_[each.id] = &each;
  }
}

double Rates::Rate(double before, double after) const {
  return std::max(0.0, after - before) / seconds_;
}

double Rates::Now(const std::string& metric, const Labels& labels) const {
  return after_.metrics.Sum(metric, labels);
}

double Rates::PerSecond(const std::string& metric, const Labels& labels) const {
  return Rate(before_.metrics.Sum(metric, labels), Now(metric, labels));
}

absl::Duration Rates::Quantile(const Labels& labels, double share) const {
  return absl::Seconds(
      QuantileBetween(before_.metrics.Buckets(kCallTime, labels),
                      after_.metrics.Buckets(kCallTime, labels), share));
}

const ConnectionSample* Rates::Before(
    const ConnectionSample& connection) const {
  const auto found = connections_.find(connection.id);
  return found == connections_.end() ? nullptr : found->second;
}

double Rates::PerSecond(const ConnectionSample& connection,
                        uint64_t ConnectionSample::*counter) const {
  const ConnectionSample* const before = Before(connection);
  return Rate(before == nullptr ? 0 : before->*counter, connection.*counter);
}

absl::Duration Rates::Quantile(const ConnectionSample& connection,
                               double share) const {
  const ConnectionSample* const before = Before(connection);
  return absl::Seconds(QuantileBetween(
      before == nullptr ? std::vector<Bucket>() : before->call_times,
      connection.call_times, share));
}

std::vector<std::string> Rates::UsedPaths() const {
  std::vector<std::string> used;
  for (const char* path : kPaths) {
    if (Now(kSessions, {{"path", path}}) > 0 ||
        Now(kMessages, {{"path", path}}) > 0) {
      used.push_back(path);
    }
  }
  return used;
}

std::vector<const ConnectionSample*> Rates::Busiest() const {
  const auto traffic = [this](const ConnectionSample& each) {
    return PerSecond(each, &ConnectionSample::bytes_sent) +
           PerSecond(each, &ConnectionSample::bytes_received);
  };
  std::vector<const ConnectionSample*> busiest;
  busiest.reserve(after_.connections.size());
  for (const ConnectionSample& each : after_.connections) {
    busiest.push_back(&each);
  }
  std::stable_sort(busiest.begin(), busiest.end(),
                   [&](const auto* left, const auto* right) {
                     return traffic(*left) > traffic(*right);
                   });
  return busiest;
}

}  // namespace penstock::cli
