#include "transport/monitoring/connection_json.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "nlohmann/json.hpp"
#include "transport/metrics/histogram.h"
#include "transport/metrics/labels.h"

namespace penstock {
namespace monitoring {
namespace {

using metrics::ConnectionInfo;
using metrics::Histogram;
using nlohmann::json;

// The members of an object and their fields, used both by the parser and by the
// writer.
template <typename T>
struct Member {
  const char* name;
  T ConnectionInfo::*field;
};

constexpr Member<std::string> kTexts[] = {{"peer", &ConnectionInfo::peer},
                                          {"path", &ConnectionInfo::path},
                                          {"detail", &ConnectionInfo::detail},
                                          {"reason", &ConnectionInfo::reason}};

constexpr Member<uint64_t> kNumbers[] = {
    {"id", &ConnectionInfo::id},
    {"eager_max_bytes", &ConnectionInfo::eager_max_bytes},
    {"chunk_bytes", &ConnectionInfo::chunk_bytes},
    {"messages_sent", &ConnectionInfo::messages_sent},
    {"messages_received", &ConnectionInfo::messages_received},
    {"bytes_sent", &ConnectionInfo::bytes_sent},
    {"bytes_received", &ConnectionInfo::bytes_received},
    {"announced_unreleased", &ConnectionInfo::announced_unreleased},
    {"streams_started", &ConnectionInfo::streams_started},
    {"streams_reset", &ConnectionInfo::streams_reset},
    {"streams", &ConnectionInfo::streams},
    {"paths_lost", &ConnectionInfo::paths_lost},
    {"paths_regained", &ConnectionInfo::paths_regained},
    {"credit_stalls", &ConnectionInfo::credit_stalls},
    {"credit_stall_ns", &ConnectionInfo::credit_stall_ns},
    {"window_stalls", &ConnectionInfo::window_stalls}};

constexpr Member<Histogram> kHistograms[] = {
    {"client_streams", &ConnectionInfo::client_streams},
    {"announced", &ConnectionInfo::announced}};

constexpr char kRole[] = "role";
constexpr char kSum[] = "sum_ns";
constexpr char kBuckets[] = "buckets";

// Calls `visit` with the name and the value of each number of the traffic, such
// as "eager_messages_sent". `Info` is ConnectionInfo, constant or not.
template <typename Info, typename Visit>
void VisitTraffic(Info& info, Visit visit) {
  const auto kinds = metrics::ValuesOf(metrics::Label::kKind);
  const auto directions = metrics::ValuesOf(metrics::Label::kDirection);
  for (int k = 0; k < metrics::kKinds; ++k) {
    for (int d = 0; d < metrics::kDirections; ++d) {
      auto& traffic = info.traffic[k][d];
      visit(absl::StrCat(kinds[k], "_messages_", directions[d]),
            traffic.messages);
      visit(absl::StrCat(kinds[k], "_bytes_", directions[d]), traffic.bytes);
    }
  }
}

json ToObject(const Histogram& histogram) {
  json buckets = json::array();
  for (int i = 0; i < Histogram::kBuckets; ++i) {
    buckets.push_back(histogram.bucket(i));
  }
  return {{kSum, histogram.sum_ns()}, {kBuckets, std::move(buckets)}};
}

json ToObject(const ConnectionInfo& info) {
  json object = {{kRole, std::string(metrics::NameOf(info.role))}};
  for (const auto& each : kTexts) object[each.name] = info.*each.field;
  for (const auto& each : kNumbers) object[each.name] = info.*each.field;
  for (const auto& each : kHistograms) {
    object[each.name] = ToObject(info.*each.field);
  }
  VisitTraffic(info, [&](const std::string& name, uint64_t value) {
    object[name] = value;
  });
  return object;
}

std::string Text(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>()
                                                     : "";
}

uint64_t AsNumber(const json& value) {
  return value.is_number_unsigned() ? value.get<uint64_t>() : 0;
}

uint64_t Number(const json& object, const std::string& name) {
  const auto found = object.find(name);
  return found == object.end() ? 0 : AsNumber(*found);
}

Histogram ToHistogram(const json& object, const char* name) {
  const auto found = object.find(name);
  if (found == object.end() || !found->is_object()) return {};
  const auto counts = found->find(kBuckets);
  if (counts == found->end() || !counts->is_array() ||
      counts->size() != Histogram::kBuckets) {
    return {};
  }
  std::array<uint64_t, Histogram::kBuckets> buckets;
  std::transform(counts->begin(), counts->end(), buckets.begin(), AsNumber);
  return Histogram(buckets, Number(*found, kSum));
}

absl::StatusOr<ConnectionInfo> ToConnection(const json& object) {
  ConnectionInfo info;
  const auto role = metrics::RoleOf(Text(object, kRole));
  if (!role.has_value()) {
    return absl::InvalidArgumentError("a connection of neither side");
  }
  info.role = *role;
  for (const auto& each : kTexts) info.*each.field = Text(object, each.name);
  for (const auto& each : kNumbers) {
    info.*each.field = Number(object, each.name);
  }
  for (const auto& each : kHistograms) {
    info.*each.field = ToHistogram(object, each.name);
  }
  VisitTraffic(info, [&](const std::string& name, uint64_t& value) {
    value = Number(object, name);
  });
  return info;
}

}  // namespace

std::string ToJson(const std::vector<ConnectionInfo>& connections) {
  std::string lines;
  for (const ConnectionInfo& each : connections) {
    absl::StrAppend(&lines,
                    ToObject(each).dump(-1, ' ', /*ensure_ascii=*/true,
                                        json::error_handler_t::replace),
                    "\n");
  }
  return lines;
}

absl::StatusOr<std::vector<ConnectionInfo>> FromJson(absl::string_view lines) {
  std::vector<ConnectionInfo> connections;
  for (absl::string_view line :
       absl::StrSplit(lines, '\n', absl::SkipEmpty())) {
    const json object =
        json::parse(line, /*cb=*/nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) {
      return absl::InvalidArgumentError("a connection that is no JSON object");
    }
    absl::StatusOr<ConnectionInfo> connection = ToConnection(object);
    if (!connection.ok()) return connection.status();
    connections.push_back(*std::move(connection));
  }
  return connections;
}

}  // namespace monitoring
}  // namespace penstock
