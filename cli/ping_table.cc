#include "cli/ping_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "cli/text/units.h"
#include "cli/top/table.h"
#include "nlohmann/json.hpp"

namespace penstock::cli {
namespace {

constexpr int kNumberColumns = 6;
constexpr int kColumns = 10;

// The number of columns for a time: "9.85 us" or "86400 s". A wide terminal has
// one more column.
constexpr int kTimeColumns = 7;
constexpr size_t kRoomyColumns = 63;

struct Quantile {
  const char* name;
  double quantile;
  int rank;  // as Column::rank: the highest rank is omitted first
};
constexpr Quantile kQuantiles[] = {{"min", 0, 4},
                                   {"p50", 0.5, 0},
                                   {"p90", 0.9, 3},
                                   {"p99", 0.99, 1},
                                   {"max", 1, 2}};

Table SummaryTable(const Output& out) {
  std::vector<Column> columns = {{"size", -9}, {"answers", 8}};
  const bool is_roomy = out.width() >= kRoomyColumns;
  for (const Quantile& each : kQuantiles) {
    columns.push_back(
        {each.name, kTimeColumns + (is_roomy ? 1 : 0), each.rank});
  }
  return Table(std::move(columns), out.width());
}

absl::Duration At(const Histogram& times, double quantile) {
  if (quantile <= 0) return times.min();
  return quantile >= 1 ? times.max() : times.Quantile(quantile);
}

std::string Median(const Histogram& times) {
  return times.count() > 0 ? DurationText(times.Quantile(0.5)) : "failed";
}

std::string SeriesLine(const PingSeries& series, const Table& table,
                       const Output& out) {
  if (series.times.count() == 0) {
    return absl::StrFormat("%-9s %8d  %s\n", BytesText(series.bytes), 0,
                           out.Styled(Style::kBad, "none came back"));
  }
  std::vector<std::string> cells = {BytesText(series.bytes),
                                    absl::StrCat(series.times.count())};
  for (const Quantile& each : kQuantiles) {
    cells.push_back(DurationText(At(series.times, each.quantile)));
  }
  return table.Row(cells);
}

}  // namespace

RoundPrinter::RoundPrinter(Output* out, std::vector<size_t> sizes)
    : out_(out), sizes_(std::move(sizes)) {}

bool RoundPrinter::HasColumns() const {
  return kNumberColumns + kColumns * sizes_.size() <= out_->columns();
}

void RoundPrinter::Header() {
  out_->Write("\n");
  if (!HasColumns()) return;
  std::string line = absl::StrFormat("%*s", kNumberColumns, "round");
  for (const size_t bytes : sizes_) {
    absl::StrAppendFormat(&line, "%*s", kColumns, BytesText(bytes));
  }
  out_->Write(absl::StrCat(out_->Styled(Style::kBold, line), "\n"));
}

void RoundPrinter::Row(uint64_t number, std::vector<PingSeries>* series) {
  std::string text;
  if (HasColumns()) text = absl::StrFormat("%*d", kNumberColumns, number);
  for (PingSeries& each : *series) {
    if (HasColumns()) {
      absl::StrAppendFormat(&text, "%*s", kColumns, Median(each.recent));
    } else {
      absl::StrAppendFormat(&text, "%s%d: %s: %s", text.empty() ? "" : "\n",
                            number, BytesText(each.bytes), Median(each.recent));
    }
    each.recent = Histogram();
  }
  out_->Write(text + "\n");
}

std::string IntroductionText(const PingSummary& summary, const Output& out) {
  std::string text = absl::StrCat(
      summary.target, " over ",
      summary.path.empty() ? "a connection that is gone" : summary.path);
  if (!summary.detail.empty()) {
    absl::StrAppend(&text, " (", summary.detail, ")");
  }
  text = absl::StrCat(Wrapped(text, 0, out.columns()), "\n");
  if (!summary.reason.empty()) {
    const std::string reason =
        absl::StrCat("not better because: ", summary.reason);
    absl::StrAppend(&text, Wrapped(reason, 0, out.columns()), "\n");
  }
  const std::string calls = absl::StrCat("calls ", summary.calls);
  return absl::StrCat(text, Wrapped(calls, 0, out.columns()), "\n");
}

std::string SummaryText(const PingSummary& summary, const Output& out) {
  uint64_t answered = 0;
  uint64_t failed = 0;
  for (const PingSeries& each : summary.series) {
    answered += each.times.count();
    failed += each.failed;
  }
  const Table table = SummaryTable(out);
  std::string text = absl::StrFormat("\n%d of %d calls answered\n", answered,
                                     answered + failed);
  const std::string header = table.Header();
  absl::StrAppend(
      &text, out.Styled(Style::kBold, absl::StripSuffix(header, "\n")), "\n");
  for (const PingSeries& each : summary.series) {
    text += SeriesLine(each, table, out);
  }
  return text + table.LeftOut();
}

std::string SummaryJson(const PingSummary& summary) {
  nlohmann::ordered_json json = {{"target", summary.target},
                                 {"path", summary.path},
                                 {"detail", summary.detail},
                                 {"reason", summary.reason},
                                 {"calls", summary.calls}};
  if (!summary.error.empty()) json["error"] = summary.error;
  json["sizes"] = nlohmann::ordered_json::array();
  for (const PingSeries& series : summary.series) {
    nlohmann::ordered_json each = {{"bytes", series.bytes},
                                   {"answered", series.times.count()},
                                   {"failed", series.failed}};
    for (const Quantile& column : kQuantiles) {
      if (series.times.count() == 0) break;
      each[absl::StrCat(column.name, "_us")] =
          absl::ToDoubleMicroseconds(At(series.times, column.quantile));
    }
    json["sizes"].push_back(each);
  }
  return json.dump(-1, ' ', /*ensure_ascii=*/true,
                   nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

}  // namespace penstock::cli
