#include "cli/top/rates.h"

#include <algorithm>
#include <limits>

#include "transport/metrics/histogram.h"

namespace penstock::cli {
namespace {

constexpr char kCallTime[] = "penstock_client_stream_duration_seconds";
constexpr const char* kPaths[] = {"shm", "verbs", "tcp", "other"};
constexpr double kMinSeconds = 1e-3;

using metrics::Histogram;

// Returns cumulative buckets, as Prometheus has them.
std::vector<Bucket> BucketsOf(const Histogram& histogram) {
  std::vector<Bucket> buckets;
  double count = 0;
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    count += static_cast<double>(histogram.bucket(i));
    const bool is_last = i == Histogram::kBounds;
    buckets.push_back({is_last
                           ? std::numeric_limits<double>::infinity()
                           : static_cast<double>(Histogram::BoundNs(i)) * 1e-9,
                       count});
  }
  return buckets;
}

}  // namespace

Rates::Rates(const Sample& before, const Sample& after)
    : before_(before),
      after_(after),
      seconds_(std::max(kMinSeconds,
                        absl::ToDoubleSeconds(after.time - before.time))) {
  for (const metrics::ConnectionInfo& each : before.connections) {
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

const metrics::ConnectionInfo* Rates::Before(
    const metrics::ConnectionInfo& connection) const {
  const auto found = connections_.find(connection.id);
  return found == connections_.end() ? nullptr : found->second;
}

double Rates::PerSecond(const metrics::ConnectionInfo& connection,
                        uint64_t metrics::ConnectionInfo::*counter) const {
  const metrics::ConnectionInfo* const before = Before(connection);
  return Rate(before == nullptr ? 0 : before->*counter, connection.*counter);
}

absl::Duration Rates::Quantile(const metrics::ConnectionInfo& connection,
                               double share) const {
  const metrics::ConnectionInfo* const before = Before(connection);
  return absl::Seconds(QuantileBetween(
      BucketsOf(before == nullptr ? Histogram() : before->client_streams),
      BucketsOf(connection.client_streams), share));
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

std::vector<const metrics::ConnectionInfo*> Rates::Busiest() const {
  const auto traffic = [this](const metrics::ConnectionInfo& each) {
    return PerSecond(each, &metrics::ConnectionInfo::bytes_sent) +
           PerSecond(each, &metrics::ConnectionInfo::bytes_received);
  };
  std::vector<const metrics::ConnectionInfo*> busiest;
  busiest.reserve(after_.connections.size());
  for (const metrics::ConnectionInfo& each : after_.connections) {
    busiest.push_back(&each);
  }
  std::stable_sort(busiest.begin(), busiest.end(),
                   [&](const auto* left, const auto* right) {
                     return traffic(*left) > traffic(*right);
                   });
  return busiest;
}

}  // namespace penstock::cli
