#include "ps/checkpoint/restore_plan.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "tensor_service/text.h"

namespace penstock::ps::checkpoint {
namespace {

std::string NameOf(const Model& model, size_t table) {
  return absl::StrCat("table '", tensor::Quoted(model.tables[table].name), "'");
}

absl::Status CheckWanted(const Model& model, const Wanted::Rows& wanted) {
  if (wanted.table >= model.tables.size() ||
      model.tables[wanted.table].kind != TableKind::kDense) {
    return absl::InvalidArgumentError(
        "rows are wanted of a table that is not dense, or not there");
  }
  const uint64_t rows = Rows(model.tables[wanted.table]);
  if (wanted.first_row <= rows && wanted.rows <= rows - wanted.first_row) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      wanted.rows, " rows from ", wanted.first_row, " on are wanted of ",
      NameOf(model, wanted.table), ", which has ", rows));
}

// Disjoint spans of rows. Maps the first row of each span to its end.
using Spans = std::map<uint64_t, uint64_t>;
// The wanted rows that were not found yet, by table.
using Open = std::map<size_t, Spans>;

absl::StatusOr<Open> AllWanted(const Model& model,
                               const std::vector<Wanted::Rows>& wanted) {
  Open open;
  for (const Wanted::Rows& rows : wanted) {
    absl::Status status = CheckWanted(model, rows);
    if (!status.ok()) return status;
    if (rows.rows == 0) continue;
    Spans& spans = open[rows.table];
    const uint64_t end = rows.first_row + rows.rows;
    const auto next = spans.lower_bound(rows.first_row);
    const auto twice = [&](uint64_t row) {
      return absl::InvalidArgumentError(absl::StrCat(
          "row ", row, " of ", NameOf(model, rows.table), " is wanted twice"));
    };
    if (next != spans.end() && next->first < end) return twice(next->first);
    if (next != spans.begin() && std::prev(next)->second > rows.first_row) {
      return twice(rows.first_row);
    }
    spans.emplace_hint(next, rows.first_row, end);
  }
  return open;
}

// Moves the rows of `spans` that are in `part` to `found`, in ascending order.
// Takes time proportional to the number of found spans: a hostile footer has
// hundreds of thousands of parts, and each part may add a span.
void Cut(const Part& part, Spans* spans, std::vector<RowSpan>* found) {
  const uint64_t part_end = part.first_row + part.rows;
  auto next = spans->upper_bound(part.first_row);
  // Start with the previous span, which may overlap the part.
  if (next != spans->begin()) --next;
  while (next != spans->end() && next->first < part_end) {
    const RowSpan span = {next->first, next->second};
    const uint64_t first = std::max(span.first, part.first_row);
    const uint64_t end = std::min(span.end, part_end);
    if (first >= end) {
      ++next;
      continue;
    }
    found->push_back({first, end});
    next = spans->erase(next);
    if (span.first < first) spans->emplace(span.first, first);
    if (end < span.end) next = spans->emplace_hint(next, end, span.end);
  }
}

void TakeFromLink(const Link& link, size_t link_index, Open* open,
                  DensePlan* plan) {
  for (size_t shard = 0; shard < link.footers.size(); ++shard) {
    const std::vector<Part>& parts = link.footers[shard].parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts[i].kind != TableKind::kDense) continue;
      const auto spans = open->find(parts[i].table);
      if (spans == open->end()) continue;
      std::vector<RowSpan> found;
      Cut(parts[i], &spans->second, &found);
      if (!found.empty()) (*plan)[{link_index, shard, i}] = std::move(found);
    }
  }
}

}  // namespace

absl::StatusOr<DensePlan> PlanDense(const Chain& chain,
                                    const std::vector<Wanted::Rows>& wanted) {
  absl::StatusOr<Open> open = AllWanted(chain.model(), wanted);
  if (!open.ok()) return open.status();
  DensePlan plan;
  for (size_t i = 0; i < chain.links.size(); ++i) {
    TakeFromLink(chain.links[i], i, &*open, &plan);
  }
  for (const auto& [table, spans] : *open) {
    if (spans.empty()) continue;
    return absl::DataLossError(absl::StrCat(
        "row ", spans.begin()->first, " of ", NameOf(chain.model(), table),
        " is in no checkpoint of the chain"));
  }
  return plan;
}

}  // namespace penstock::ps::checkpoint
