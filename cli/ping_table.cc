#include "cli/ping_table.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cli/text/units.h"
#include "nlohmann/json.hpp"

namespace penstock::cli {
namespace {

constexpr int kNumberColumns = 6;
constexpr int kColumns = 10;

struct Column {
  const char* name;
  double quantile;
};
constexpr Column kQuantiles[] = {
    {"min", 0}, {"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"max", 1}};

absl::Duration At(const Histogram& times, double quantile) {
  if (quantile <= 0) return times.min();
  return quantile >= 1 ? times.max() : times.Quantile(quantile);
}

std::string Median(const Histogram& times) {
  return times.count() > 0 ? DurationText(times.Quantile(0.5)) : "failed";
}

std::string SeriesLine(const Series& series, const Output& out) {
  std::string line =
      absl::StrFormat("%-9s%9d", BytesText(series.bytes), series.times.count());
  if (series.times.count() == 0) {
    return absl::StrCat(line, "  ", out.Styled(Style::kBad, "none came back"),
                        "\n");
  }
  for (const Column& each : kQuantiles) {
    absl::StrAppendFormat(&line, "%*s", kColumns,
                          DurationText(At(series.times, each.quantile)));
  }
  return line + "\n";
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

void RoundPrinter::Row(uint64_t number, std::vector<Series>* series) {
  std::string text;
  if (HasColumns()) text = absl::StrFormat("%*d", kNumberColumns, number);
  for (Series& each : *series) {
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

std::string SummaryText(const PingSummary& summary, const Output& out) {
  uint64_t answered = 0;
  uint64_t failed = 0;
  for (const Series& each : summary.series) {
    answered += each.times.count();
    failed += each.failed;
  }
  std::string text = absl::StrFormat("\n%d of %d calls answered\n", answered,
                                     answered + failed);
  std::string head = absl::StrFormat("%-9s%9s", "size", "answers");
  for (const Column& each : kQuantiles) {
    absl::StrAppendFormat(&head, "%*s", kColumns, each.name);
  }
  absl::StrAppend(&text, out.Styled(Style::kBold, head), "\n");
  for (const Series& each : summary.series) text += SeriesLine(each, out);
  return text;
}

std::string SummaryJson(const PingSummary& summary) {
  nlohmann::ordered_json json = {{"target", summary.target},
                                 {"path", summary.path},
                                 {"detail", summary.detail},
                                 {"reason", summary.reason},
                                 {"calls", summary.calls}};
  json["sizes"] = nlohmann::ordered_json::array();
  for (const Series& series : summary.series) {
    nlohmann::ordered_json each = {{"bytes", series.bytes},
                                   {"answered", series.times.count()},
                                   {"failed", series.failed}};
    for (const Column& column : kQuantiles) {
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
