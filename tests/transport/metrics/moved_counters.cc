#include "tests/transport/metrics/moved_counters.h"

#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace penstock::metrics {
namespace {

using Series = std::map<std::string, double>;

absl::string_view NameOf(absl::string_view series) {
  return series.substr(0, series.find('{'));
}

// Returns the series of counters only.
Series CountersOf(const std::string& page) {
  std::set<std::string> counters;
  Series series;
  for (absl::string_view line : absl::StrSplit(page, '\n')) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (absl::StartsWith(line, "# TYPE ")) {
      if (words.back() == "counter") counters.insert(words[2]);
    } else if (words.size() == 2 &&
               counters.count(std::string(NameOf(words[0]))) > 0) {
      double value = 0;
      if (absl::SimpleAtod(words[1], &value)) series[words[0]] = value;
    }
  }
  return series;
}

// The series of ordinary work. Each has a counter's name, and a label that the
// series must have.
struct Work {
  const char* name;
  const char* label;
};
constexpr Work kWork[] = {
    {"penstock_sessions_started_total", ""},
    {"penstock_sessions_ended_total", "end=\"closed\""},
    {"penstock_path_decisions_total", "reason=\"none\""},
    {"penstock_path_decisions_total", "reason=\"not_enabled\""},
    {"penstock_path_decisions_total", "reason=\"stock_peer\""},
    {"penstock_streams_started_total", ""},
    {"penstock_messages_total", ""},
    {"penstock_message_bytes_total", ""},
    {"penstock_registration_cache_hits_total", ""},
    {"penstock_registration_cache_misses_total", ""},
    // Waits for messages occur in ordinary work, too: a slow peer, such as an
    // emulated machine, returns receive buffers late.
    {"penstock_credit_stalls_total", "path=\"verbs\""},
    {"penstock_credit_stall_seconds_total", "path=\"verbs\""},
};

bool CountsWork(absl::string_view moved) {
  for (const Work& work : kWork) {
    if (NameOf(moved) == work.name && absl::StrContains(moved, work.label)) {
      return true;
    }
  }
  return false;
}

double SumOf(const Series& series, absl::string_view name) {
  double sum = 0;
  for (const auto& each : series) {
    if (NameOf(each.first) == name) sum += each.second;
  }
  return sum;
}

}  // namespace

std::vector<std::string> MovedCounters(const std::string& before,
                                       const std::string& after) {
  Series old = CountersOf(before);
  std::vector<std::string> moved;
  for (const auto& each : CountersOf(after)) {
    const double difference = each.second - old[each.first];
    if (difference != 0) {
      moved.push_back(absl::StrCat(each.first, " +", difference));
    }
  }
  return moved;
}

std::vector<std::string> MovedWithoutCause(const std::string& before,
                                           const std::string& after) {
  std::vector<std::string> rest;
  for (std::string& moved : MovedCounters(before, after)) {
    if (!CountsWork(moved)) rest.push_back(std::move(moved));
  }
  return rest;
}

double OpenSessions(const std::string& page) {
  const Series series = CountersOf(page);
  return SumOf(series, "penstock_sessions_started_total") -
         SumOf(series, "penstock_sessions_ended_total");
}

}  // namespace penstock::metrics
