#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/text/units.h"
#include "cli/top/figures.h"
#include "cli/top/parameter_server.h"
#include "cli/top/rates.h"
#include "cli/top/table.h"
#include "cli/top/view.h"
#include "transport/base/printable.h"
#include "transport/metrics/labels.h"

namespace penstock::cli {
namespace {

constexpr char kDecisions[] = "penstock_path_decisions_total";

constexpr size_t kMaxConnections = 20;
constexpr size_t kMaxPeerBytes = 30;
constexpr size_t kMaxReasonBytes = 160;

// Formats a time. Zero means that there were no calls.
std::string Time(absl::Duration time) {
  if (time == absl::ZeroDuration()) return "-";
  if (time == absl::InfiniteDuration()) return "> 16 s";
  return DurationText(time);
}

double Share(double part, double all) { return all > 0 ? part / all : 0; }

std::string Heading(const Output& out, absl::string_view text) {
  return absl::StrCat("\n", out.Styled(Style::kBold, text), "\n");
}

std::string Calls(const Rates& rates) {
  std::string text;
  for (const std::string role : {"client", "server"}) {
    const Labels of_role = {{"role", role}};
    if (rates.Now("penstock_streams_started_total", of_role) == 0) continue;
    absl::StrAppend(
        &text, "as ", role, "  ",
        Count(rates.PerSecond("penstock_streams_started_total", of_role)),
        "/s, ", Count(rates.Now("penstock_streams", of_role)), " under way, ",
        Count(rates.PerSecond("penstock_streams_reset_total", of_role)),
        "/s ended without a status\n");
  }
  return text.empty() ? "none yet\n" : text;
}

std::string PathRow(const Rates& rates, const std::string& path,
                    const Table& table) {
  const Labels of_path = {{"path", path}};
  const Labels sent = {{"path", path}, {"direction", "sent"}};
  const Labels received = {{"path", path}, {"direction", "received"}};
  const Labels announced = {{"path", path}, {"kind", "announced"}};
  const double share = Share(rates.PerSecond(kBytes, announced),
                             rates.PerSecond(kBytes, of_path));
  return table.Row({path, Count(rates.Now(kSessions, of_path)),
                    Count(rates.PerSecond(kMessages, sent)),
                    Count(rates.PerSecond(kMessages, received)),
                    Bytes(rates.PerSecond(kBytes, sent)),
                    Bytes(rates.PerSecond(kBytes, received)),
                    absl::StrFormat("%.0f%%", 100 * share),
                    Time(rates.Quantile(of_path, 0.5)),
                    Time(rates.Quantile(of_path, 0.99))});
}

std::string Paths(const Rates& rates, const Output& out) {
  const Table table({{"", -6},
                     {"connections", 11, 3},
                     {"sent/s", 8, 1},
                     {"recv/s", 8, 2},
                     {"sent B/s", 10},
                     {"recv B/s", 10},
                     {"announced", 10, 5},
                     {"call p50", 9},
                     {"p99", 9, 4}},
                    out.width());
  std::string text = table.Header();
  for (const std::string& path : rates.UsedPaths()) {
    text += PathRow(rates, path, table);
  }
  return text + table.LeftOut();
}

// Returns the resources in use, such as "shm 2 MiB of 1 GiB".
std::string Uses(const Rates& rates, const Sample& after,
                 const std::string& metric, const std::string& limit,
                 const std::string& label) {
  std::vector<std::string> uses;
  for (const Series& each : after.metrics.All(metric)) {
    const auto name = each.labels.find(label);
    if (name == each.labels.end() || each.value <= 0) continue;
    uses.push_back(absl::StrCat(
        base::Printable(name->second, kMaxPeerBytes), " ", Bytes(each.value),
        " of ", Bytes(rates.Now(limit, {{label, name->second}}))));
  }
  return uses.empty() ? "none" : absl::StrJoin(uses, ", ");
}

std::string Memory(const Rates& rates, const Sample& after) {
  std::string text =
      absl::StrCat("pools: ",
                   Uses(rates, after, "penstock_pool_reserved_bytes",
                        "penstock_pool_limit_bytes", "pool"),
                   "\nheld for peers: ",
                   Uses(rates, after, "penstock_budget_used_bytes",
                        "penstock_budget_limit_bytes", "budget"),
                   "\n");
  const double hits = rates.Now("penstock_registration_cache_hits_total");
  const double misses = rates.Now("penstock_registration_cache_misses_total");
  if (hits + misses > 0) {
    absl::StrAppend(
        &text, "registered: ",
        Bytes(rates.Now("penstock_registration_cache_used_bytes")), " of ",
        Bytes(rates.Now("penstock_registration_cache_limit_bytes")), ", ",
        absl::StrFormat("%.1f%%", 100 * hits / (hits + misses)),
        " of look-ups hit\n");
  }
  return text;
}

// Returns the troubles since the process started. Omits those that did not
// occur.
std::string Troubles(const Rates& rates, const Sample& after) {
  std::vector<std::string> lines;
  for (const Trouble& each : kTroubles) {
    const double all = rates.Now(each.metric);
    if (all <= 0) continue;
    lines.push_back(absl::StrCat(each.says, ": ", Count(all), " (",
                                 Count(rates.PerSecond(each.metric)), "/s)"));
  }
  for (const Series& each : after.metrics.All(kDecisions)) {
    const auto reason = each.labels.find("reason");
    const auto path = each.labels.find("path");
    if (each.value <= 0 || reason == each.labels.end() ||
        path == each.labels.end() || reason->second == "none") {
      continue;
    }
    lines.push_back(
        absl::StrCat("went over ", base::Printable(path->second, kMaxPeerBytes),
                     ", ", base::Printable(reason->second, kMaxPeerBytes), ": ",
                     Count(each.value)));
  }
  return lines.empty() ? "nothing\n" : absl::StrJoin(lines, "\n") + "\n";
}

std::string ConnectionRow(const Rates& rates,
                          const metrics::ConnectionInfo& each,
                          const Table& table, const Output& out) {
  using metrics::ConnectionInfo;
  const auto per_second = [&](uint64_t ConnectionInfo::*counter) {
    return rates.PerSecond(each, counter);
  };
  std::string text = table.Row(
      {std::string(metrics::NameOf(each.role)), base::Printable(each.path, 6),
       base::Printable(each.peer, kMaxPeerBytes),
       Count(per_second(&ConnectionInfo::messages_sent)),
       Count(per_second(&ConnectionInfo::messages_received)),
       Bytes(per_second(&ConnectionInfo::bytes_sent)),
       Bytes(per_second(&ConnectionInfo::bytes_received)), Count(each.streams),
       Bytes(each.eager_max_bytes), Time(rates.Quantile(each, 0.5))});
  if (!each.reason.empty()) {
    const std::string reason = base::Printable(each.reason, kMaxReasonBytes);
    absl::StrAppend(&text, "       ", Wrapped(reason, 7, out.width()), "\n");
  }
  return text;
}

std::string Connections(const Rates& rates, const Sample& after,
                        const Output& out) {
  const Table table({{"as", -6},
                     {"path", -6},
                     {"peer", -static_cast<int>(kMaxPeerBytes)},
                     {"sent/s", 8, 3},
                     {"recv/s", 8, 4},
                     {"sent B/s", 10},
                     {"recv B/s", 10, 1},
                     {"RPCs", 5, 5},
                     {"eager to", 8, 6},
                     {"call p50", 9, 2}},
                    out.width());
  std::string text = table.Header();
  const auto busiest = rates.Busiest();
  for (size_t i = 0; i < std::min(busiest.size(), kMaxConnections); ++i) {
    text += ConnectionRow(rates, *busiest[i], table, out);
  }
  if (busiest.size() > kMaxConnections) {
    absl::StrAppend(&text, "and ", busiest.size() - kMaxConnections,
                    " more, with less to do\n");
  }
  return text + table.LeftOut();
}

}  // namespace

std::string ViewText(const Sample& before, const Sample& after,
                     const Output& out) {
  const Rates rates(before, after);
  std::string text =
      absl::StrCat(out.Styled(Style::kBold, "RPCs"), "\n", Calls(rates),
                   Heading(out, "Paths"), Paths(rates, out),
                   Heading(out, "Memory"), Memory(rates, after),
                   Heading(out, "What went wrong since the process began"),
                   Troubles(rates, after));
  if (after.has_connections) {
    absl::StrAppend(&text, Heading(out, "Connections"),
                    Connections(rates, after, out));
  }
  text += ParameterServerText(rates, after, out);
  return text;
}

}  // namespace penstock::cli
