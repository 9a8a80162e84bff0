#include "cli/top/metrics_text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxQuotedBytes = 60;

bool HasAll(const Labels& labels, const Labels& wanted) {
  return std::all_of(wanted.begin(), wanted.end(), [&](const auto& each) {
    const auto found = labels.find(each.first);
    return found != labels.end() && found->second == each.second;
  });
}

// Removes `key="value"` from the front of `text`. Returns false if there is
// none.
bool TakeLabel(absl::string_view* text, Labels* labels) {
  const size_t equals = text->find("=\"");
  if (equals == absl::string_view::npos) return false;
  const std::string key(text->substr(0, equals));
  text->remove_prefix(equals + 2);
  std::string value;
  while (!text->empty() && text->front() != '"') {
    if (text->front() == '\\') {
      text->remove_prefix(1);
      if (text->empty()) return false;
      value.push_back(text->front() == 'n' ? '\n' : text->front());
    } else {
      value.push_back(text->front());
    }
    text->remove_prefix(1);
  }
  if (!absl::ConsumePrefix(text, "\"")) return false;
  absl::ConsumePrefix(text, ",");
  (*labels)[key] = std::move(value);
  return true;
}

bool ParseLine(absl::string_view line, std::string* metric, Series* series) {
  const size_t name = line.find_first_of("{ ");
  if (name == 0 || name == absl::string_view::npos) return false;
  *metric = std::string(line.substr(0, name));
  line.remove_prefix(name);
  if (absl::ConsumePrefix(&line, "{")) {
    while (!absl::ConsumePrefix(&line, "}")) {
      if (!TakeLabel(&line, &series->labels)) return false;
    }
  }
  // Accepts a timestamp after the value.
  const std::vector<absl::string_view> words =
      absl::StrSplit(line, ' ', absl::SkipEmpty());
  return !words.empty() && words.size() <= 2 &&
         absl::SimpleAtod(words[0], &series->value);
}

}  // namespace

absl::StatusOr<MetricsText> MetricsText::Parse(absl::string_view text) {
  MetricsText parsed;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    absl::ConsumeSuffix(&line, "\r");
    if (line.empty() || line.front() == '#') continue;
    std::string metric;
    Series series;
    if (!ParseLine(line, &metric, &series)) {
      return absl::InvalidArgumentError(
          absl::StrCat("not a line of Prometheus' format: ",
                       base::Printable(line, kMaxQuotedBytes)));
    }
    parsed.series_[metric].push_back(std::move(series));
  }
  return parsed;
}

bool MetricsText::Has(const std::string& metric) const {
  return series_.count(metric) > 0;
}

const std::vector<Series>& MetricsText::All(const std::string& metric) const {
  static const auto* const kNone = new std::vector<Series>();
  const auto found = series_.find(metric);
  return found == series_.end() ? *kNone : found->second;
}

double MetricsText::Sum(const std::string& metric, const Labels& labels) const {
  double sum = 0;
  for (const Series& each : All(metric)) {
    if (HasAll(each.labels, labels)) sum += each.value;
  }
  return sum;
}

std::vector<Bucket> MetricsText::Buckets(const std::string& histogram,
                                         const Labels& labels) const {
  std::map<double, double> counts;
  for (const Series& each : All(histogram + "_bucket")) {
    const auto bound = each.labels.find("le");
    double value = 0;
    if (bound == each.labels.end() || !HasAll(each.labels, labels) ||
        !absl::SimpleAtod(bound->second, &value) || std::isnan(value)) {
      continue;
    }
    counts[value] += each.value;
  }
  std::vector<Bucket> buckets;
  buckets.reserve(counts.size());
  for (const auto& [bound, count] : counts) buckets.push_back({bound, count});
  return buckets;
}

double QuantileBetween(const std::vector<Bucket>& before,
                       const std::vector<Bucket>& after, double share) {
  if (after.empty()) return 0;
  const auto count = [&](size_t i) {
    // Ignores the earlier counts if their buckets differ, because another
    // process has replaced the first.
    const bool fits = before.size() == after.size() &&
                      before.back().count <= after.back().count;
    return after[i].count - (fits ? before[i].count : 0);
  };
  const double all = count(after.size() - 1);
  if (all <= 0) return 0;
  for (size_t i = 0; i < after.size(); ++i) {
    if (count(i) >= share * all) return after[i].bound;
  }
  return std::numeric_limits<double>::infinity();
}

}  // namespace penstock::cli
