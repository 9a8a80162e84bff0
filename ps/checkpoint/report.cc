#include "ps/checkpoint/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "ps/checkpoint/names.h"
#include "transport/base/bytes_text.h"
#include "transport/base/printable.h"

namespace penstock::ps::checkpoint {
namespace {

using Json = nlohmann::ordered_json;

std::string Printable(absl::string_view text) {
  return base::Printable(text, 400);
}

std::string Counted(uint64_t count, absl::string_view what) {
  return absl::StrCat(count, " ", what, count == 1 ? "" : "s");
}

std::string Dump(const Json& json) { return json.dump(2) + "\n"; }

std::string Time(int64_t unix_seconds) {
  return absl::FormatTime("%Y-%m-%d %H:%M:%S UTC",
                          absl::FromUnixSeconds(unix_seconds),
                          absl::UTCTimeZone());
}

uint64_t Bytes(const Manifest& manifest) {
  uint64_t bytes = 0;
  for (const ShardInfo& shard : manifest.shards) bytes += shard.bytes;
  return bytes;
}

// The rows and bytes of a table in one checkpoint, without its bases.
struct Content {
  uint64_t parts = 0;
  uint64_t rows = 0;
  uint64_t removed = 0;
  uint64_t bytes = 0;
  uint64_t least_step = 0;
  uint64_t most_step = 0;
};

std::vector<Content> ContentsOf(const Link& link) {
  std::vector<Content> contents(link.manifest.model.tables.size());
  for (const Footer& footer : link.footers) {
    for (const Part& part : footer.parts) {
      Content& content = contents[part.table];
      content.least_step = content.parts == 0
                               ? part.step
                               : std::min(content.least_step, part.step);
      content.most_step = std::max(content.most_step, part.step);
      ++content.parts;
      content.rows += part.rows;
      content.removed += part.removed;
      content.bytes += part.bytes;
    }
  }
  return contents;
}

Json ToJson(const Manifest& manifest) {
  Json json;
  json["step"] = manifest.attempt.step;
  json["folder"] = StepFolder(manifest.attempt.step);
  json["created_unix_seconds"] = manifest.created_unix_seconds;
  json["placement_epoch"] = manifest.placement_epoch;
  json["tables"] = manifest.model.tables.size();
  json["shards"] = manifest.shards.size();
  json["bytes"] = Bytes(manifest);
  if (manifest.base.has_value()) json["base_step"] = manifest.base->step;
  json["depth"] = manifest.depth;
  return json;
}

Json ToJson(const TableDefinition& table, const Content& content) {
  Json json;
  json["name"] = Printable(table.name);
  json["kind"] = table.kind == TableKind::kDense ? "dense" : "sparse";
  json["dtype"] = std::string(tensor::Name(table.dtype));
  json["shape"] = table.shape;
  json["slots"] = Json::array();
  for (const SlotDefinition& slot : table.slots) {
    json["slots"].push_back({{"name", Printable(slot.name)},
                             {"dtype", std::string(tensor::Name(slot.dtype))}});
  }
  json["parts"] = content.parts;
  json["rows"] = content.rows;
  json["removed"] = content.removed;
  json["bytes"] = content.bytes;
  json["least_step"] = content.least_step;
  json["most_step"] = content.most_step;
  return json;
}

std::string OneLine(const Manifest& manifest) {
  std::string kind = "full";
  if (manifest.base.has_value()) {
    kind = absl::StrCat("on ", StepFolder(manifest.base->step));
  }
  return absl::StrCat(StepFolder(manifest.attempt.step), "  ",
                      Time(manifest.created_unix_seconds), "  ", kind, "  ",
                      Counted(manifest.shards.size(), "shard"), ", ",
                      base::BytesText(Bytes(manifest)));
}

std::string OneLine(const TableDefinition& table, const Content& content) {
  std::string line =
      absl::StrCat("  ", Printable(table.name), ": ",
                   table.kind == TableKind::kDense ? "dense " : "sparse ",
                   std::string(tensor::Name(table.dtype)), " [",
                   absl::StrJoin(table.shape, ", "), "]");
  for (const SlotDefinition& slot : table.slots) {
    absl::StrAppend(&line, ", slot ", Printable(slot.name), " ",
                    std::string(tensor::Name(slot.dtype)));
  }
  if (content.parts == 0) return line + ": unchanged since the base\n";
  absl::StrAppend(&line, ": ", Counted(content.rows, "row"));
  if (content.removed > 0) {
    absl::StrAppend(&line, " and ", content.removed, " removed");
  }
  return absl::StrCat(line, " in ", Counted(content.parts, "part"), ", ",
                      base::BytesText(content.bytes), ", step ",
                      content.least_step,
                      content.least_step == content.most_step
                          ? ""
                          : absl::StrCat(" to ", content.most_step),
                      "\n");
}

Report One(const Link& link, Form form) {
  const Manifest& manifest = link.manifest;
  const std::vector<Content> contents = ContentsOf(link);
  const std::vector<TableDefinition>& tables = manifest.model.tables;
  if (form == Form::kJson) {
    Json json = ToJson(manifest);
    json["tables"] = Json::array();
    for (size_t i = 0; i < tables.size(); ++i) {
      json["tables"].push_back(ToJson(tables[i], contents[i]));
    }
    json["clocks"] = Json::array();
    for (const WorkerClock& clock : manifest.cut.clocks) {
      json["clocks"].push_back({{"rank", clock.rank},
                                {"incarnation", clock.incarnation},
                                {"clock", clock.clock}});
    }
    return {Dump(json), true};
  }
  std::string text = OneLine(manifest) + "\n";
  for (size_t i = 0; i < tables.size(); ++i) {
    text += OneLine(tables[i], contents[i]);
  }
  for (const WorkerClock& clock : manifest.cut.clocks) {
    absl::StrAppend(&text, "  worker ", clock.rank, ": clock ", clock.clock,
                    "\n");
  }
  return {text, true};
}

absl::StatusOr<Report> All(Files* files, Form form) {
  const auto steps = ListSteps(files);
  if (!steps.ok()) return steps.status();
  Json list = Json::array();
  Report report;
  uint64_t bytes = 0;
  for (uint64_t step : *steps) {
    const absl::StatusOr<Chain> chain = OpenChain(files, step);
    if (chain.ok()) {
      bytes += Bytes(chain->newest());
      list.push_back(ToJson(chain->newest()));
      absl::StrAppend(&report.text, OneLine(chain->newest()), "\n");
      continue;
    }
    report.is_good = false;
    const std::string error = Printable(chain.status().message());
    list.push_back(
        {{"step", step}, {"folder", StepFolder(step)}, {"error", error}});
    absl::StrAppend(&report.text, StepFolder(step), "  BAD: ", error, "\n");
  }
  absl::StrAppend(&report.text,
                  steps->empty()
                      ? "no checkpoint"
                      : absl::StrCat("together: ", base::BytesText(bytes)),
                  "\n");
  if (form == Form::kJson) {
    report.text = Dump({{"checkpoints", list}, {"bytes", bytes}});
  }
  return report;
}

Json ToJson(uint64_t step, const Verification& found) {
  Json json;
  json["step"] = step;
  json["good"] = found.damaged == 0;
  json["checkpoints"] = found.checkpoints;
  json["blocks"] = found.blocks;
  json["bytes"] = found.bytes;
  json["damaged"] = found.damaged;
  json["damages"] = Json::array();
  for (const Damage& damage : found.damages) {
    json["damages"].push_back({{"step", damage.step},
                               {"table", Printable(damage.table)},
                               {"block", damage.block},
                               {"what", Printable(damage.what)}});
  }
  return json;
}

std::string ToText(uint64_t step, const Verification& found) {
  std::string text;
  for (const Damage& damage : found.damages) {
    absl::StrAppend(&text, Printable(damage.what), "\n");
  }
  if (found.damaged > found.damages.size()) {
    absl::StrAppend(&text, "and ", found.damaged - found.damages.size(),
                    " more\n");
  }
  return absl::StrCat(text, StepFolder(step), ": ",
                      found.damaged == 0 ? "good" : "DAMAGED", ", ",
                      Counted(found.blocks, "block"), " and ",
                      base::BytesText(found.bytes), " read",
                      found.checkpoints > 1
                          ? absl::StrCat(", of a chain of ", found.checkpoints)
                          : "",
                      "\n");
}

absl::StatusOr<uint64_t> StepOrNewest(Files* files,
                                      absl::optional<uint64_t> step) {
  if (step.has_value()) return *step;
  const auto steps = ListSteps(files);
  if (!steps.ok()) return steps.status();
  if (steps->empty()) return absl::NotFoundError("no checkpoint");
  return steps->front();
}

}  // namespace

absl::StatusOr<Report> Inspect(Files* files, absl::optional<uint64_t> step,
                               Form form) {
  if (!step.has_value()) return All(files, form);
  const absl::StatusOr<Chain> chain = OpenChain(files, *step);
  if (!chain.ok()) return chain.status();
  return One(chain->links.front(), form);
}

absl::StatusOr<Report> VerifyAndReport(Files* files,
                                       absl::optional<uint64_t> step, Form form,
                                       const Progress& progress) {
  const absl::StatusOr<uint64_t> which = StepOrNewest(files, step);
  if (!which.ok()) return which.status();
  const auto found = Verify(files, *which, progress);
  if (!found.ok()) return found.status();
  Report report;
  report.is_good = found->damaged == 0;
  report.text = form == Form::kJson ? Dump(ToJson(*which, *found))
                                    : ToText(*which, *found);
  return report;
}

}  // namespace penstock::ps::checkpoint
