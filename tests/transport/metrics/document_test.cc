// Tests that the table of metrics and docs/operations.md agree.

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "transport/metrics/labels.h"
#include "transport/metrics/table.h"

namespace penstock {
namespace metrics {
namespace {

std::vector<std::string> DocumentedRows(absl::string_view begin) {
  std::stringstream text;
  text << std::ifstream("docs/operations.md").rdbuf();
  const std::string document = text.str();
  std::vector<std::string> rows;
  for (absl::string_view line : absl::StrSplit(document, '\n')) {
    if (absl::StartsWith(line, begin)) rows.emplace_back(line);
  }
  return rows;
}

std::string RowText(const Row& row) {
  std::vector<absl::string_view> labels;
  for (const Label label : row.labels) labels.push_back(NameOf(label));
  return absl::StrCat("| `", row.name, "` | ", TypeName(row.type), " | ",
                      absl::StrJoin(labels, ", "),
                      labels.empty() ? "| " : " | ", row.help, " |");
}

TEST(MetricsDocument, EveryMetricHasItsRowAndNoOtherHasOne) {
  std::vector<std::string> wanted;
  for (const Row& row : Table()) wanted.push_back(RowText(row));
  // Leaves out the metrics of parameter servers, which tests/ps/service tests.
  std::vector<std::string> found = DocumentedRows("| `penstock_");
  found.erase(std::remove_if(found.begin(), found.end(),
                             [](const std::string& row) {
                               return absl::StartsWith(row, "| `penstock_ps_");
                             }),
              found.end());
  EXPECT_EQ(found, wanted) << "docs/operations.md is to have:\n"
                           << absl::StrJoin(wanted, "\n");
}

TEST(MetricsDocument, EveryLabelIsThereWithAllItsValues) {
  std::vector<std::string> wanted;
  for (const auto& of :
       {std::make_pair("all with it", Label::kRole),
        std::make_pair("`penstock_path_decisions_total`", Label::kPath),
        std::make_pair("all others with it", Label::kFabric),
        std::make_pair("all with it", Label::kKind),
        std::make_pair("all with it", Label::kDirection),
        std::make_pair("`penstock_path_decisions_total`", Label::kReason),
        std::make_pair("`penstock_connections_refused_total`", Label::kRefusal),
        std::make_pair("all with it", Label::kEnd),
        std::make_pair("all with it", Label::kBudget),
        std::make_pair("all with it", Label::kPool),
        std::make_pair("all with it", Label::kStatus)}) {
    wanted.push_back(absl::StrCat(
        "| ", NameOf(of.second), " | ", of.first, " | ",
        absl::StrJoin(ValuesOf(of.second), ", ",
                      [](std::string* out, absl::string_view value) {
                        absl::StrAppend(out, "`", value, "`");
                      }),
        " |"));
  }
  std::vector<std::string> found;
  for (const char* name : {"role", "path", "kind", "direction", "reason", "end",
                           "budget", "pool", "status"}) {
    for (std::string& row : DocumentedRows(absl::StrCat("| ", name, " | "))) {
      found.push_back(std::move(row));
    }
  }
  EXPECT_EQ(found, wanted) << "docs/operations.md is to have:\n"
                           << absl::StrJoin(wanted, "\n");
}

}  // namespace
}  // namespace metrics
}  // namespace penstock
