#include <utility>

#include "cli/top/parameter_server.h"
#include "cli/top/rates.h"
#include "cli/top/view.h"
#include "nlohmann/json.hpp"
#include "transport/metrics/labels.h"

namespace penstock::cli {
namespace {

using json = nlohmann::ordered_json;

json CallsJson(const Rates& rates, const std::string& role) {
  const Labels of_role = {{"role", role}};
  return {{"started_per_second",
           rates.PerSecond("penstock_streams_started_total", of_role)},
          {"reset_per_second",
           rates.PerSecond("penstock_streams_reset_total", of_role)},
          {"under_way", rates.Now("penstock_streams", of_role)}};
}

json PathJson(const Rates& rates, const std::string& path) {
  const Labels of_path = {{"path", path}};
  json row = {{"path", path}, {"connections", rates.Now(kSessions, of_path)}};
  for (const std::string direction : {"sent", "received"}) {
    const Labels labels = {{"path", path}, {"direction", direction}};
    row["messages_" + direction + "_per_second"] =
        rates.PerSecond(kMessages, labels);
    row["bytes_" + direction + "_per_second"] = rates.PerSecond(kBytes, labels);
  }
  row["announced_bytes_per_second"] =
      rates.PerSecond(kBytes, {{"path", path}, {"kind", "announced"}});
  for (const auto& [name, share] :
       {std::pair<const char*, double>{"call_p50_seconds", 0.5},
        {"call_p99_seconds", 0.99}}) {
    const absl::Duration time = rates.Quantile(of_path, share);
    // Writes null for infinity, which JSON cannot express.
    row[name] = time == absl::InfiniteDuration()
                    ? json()
                    : json(absl::ToDoubleSeconds(time));
  }
  return row;
}

json ConnectionJson(const Rates& rates, const metrics::ConnectionInfo& each) {
  return {{"id", each.id},
          {"role", std::string(metrics::NameOf(each.role))},
          {"peer", each.peer},
          {"path", each.path},
          {"detail", each.detail},
          {"reason", each.reason},
          {"messages_sent_per_second",
           rates.PerSecond(each, &metrics::ConnectionInfo::messages_sent)},
          {"messages_received_per_second",
           rates.PerSecond(each, &metrics::ConnectionInfo::messages_received)},
          {"bytes_sent_per_second",
           rates.PerSecond(each, &metrics::ConnectionInfo::bytes_sent)},
          {"bytes_received_per_second",
           rates.PerSecond(each, &metrics::ConnectionInfo::bytes_received)},
          {"streams", each.streams},
          {"eager_max_bytes", each.eager_max_bytes},
          {"chunk_bytes", each.chunk_bytes}};
}

}  // namespace

std::string ViewJson(const Sample& before, const Sample& after,
                     absl::Time now) {
  const Rates rates(before, after);
  json view = {
      {"time", absl::FormatTime(absl::RFC3339_sec, now, absl::UTCTimeZone())},
      {"seconds", rates.seconds()},
      {"client", CallsJson(rates, "client")},
      {"server", CallsJson(rates, "server")},
      {"paths", json::array()},
      {"troubles", json::object()}};
  for (const std::string& path : rates.UsedPaths()) {
    view["paths"].push_back(PathJson(rates, path));
  }
  for (const Trouble& each : kTroubles) {
    view["troubles"][each.metric] = rates.Now(each.metric);
  }
  if (after.has_connections) {
    view["connections"] = json::array();
    for (const metrics::ConnectionInfo* each : rates.Busiest()) {
      view["connections"].push_back(ConnectionJson(rates, *each));
    }
  }
  json server = ParameterServerJson(rates, after);
  if (!server.is_null()) view["parameter_server"] = std::move(server);
  return view.dump(-1, ' ', /*ensure_ascii=*/true,
                   json::error_handler_t::replace) +
         "\n";
}

}  // namespace penstock::cli
