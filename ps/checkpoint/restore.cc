#include "ps/checkpoint/restore.h"

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/little_endian.h"
#include "ps/checkpoint/restore_plan.h"
#include "ps/checkpoint/shard_reader.h"
#include "tensor_service/text.h"

namespace penstock::ps::checkpoint {
namespace {

constexpr size_t kNone = std::numeric_limits<size_t>::max();

// Returns, for each table of `from`, the index of the table with this name in
// `to`, or kNone.
std::vector<size_t> Indices(const Model& from, const Model& to) {
  std::map<absl::string_view, size_t> by_name;
  for (size_t i = 0; i < to.tables.size(); ++i) {
    by_name[to.tables[i].name] = i;
  }
  std::vector<size_t> indices;
  for (const TableDefinition& table : from.tables) {
    const auto found = by_name.find(table.name);
    indices.push_back(found == by_name.end() ? kNone : found->second);
  }
  return indices;
}

std::string DifferenceButForNew(const Model& in_checkpoint, const Model& ours) {
  std::string difference = DifferenceOfCommon(in_checkpoint, ours);
  if (!difference.empty()) return difference;
  const std::vector<std::string> gone = NotIn(ours, in_checkpoint);
  if (gone.empty()) return "";
  return absl::StrCat("table '", tensor::Quoted(gone.front()),
                      "' is in the checkpoint and not in this model");
}

class Restorer {
 public:
  Restorer(Files* files, const Chain& chain, const Model& model,
           const Wanted& wanted, Sink* sink, const Progress& progress)
      : files_(files),
        chain_(chain),
        wanted_(wanted),
        sink_(sink),
        progress_(progress),
        ours_(Indices(chain.model(), model)),
        theirs_(Indices(model, chain.model())) {}

  absl::Status Run() {
    std::vector<Wanted::Rows> rows;
    for (Wanted::Rows each : wanted_.rows) {
      if (each.table < theirs_.size()) {
        each.table = theirs_[each.table];
        if (each.table == kNone) continue;  // a new table
      }
      rows.push_back(each);
    }
    absl::StatusOr<DensePlan> plan = PlanDense(chain_, rows);
    if (!plan.ok()) return plan.status();
    plan_ = *std::move(plan);
    CountBytes();
    absl::Status status = TakeSparseSteps();
    if (!status.ok()) return status;
    // Reads the oldest checkpoint first, because later sparse rows replace
    // earlier ones.
    for (size_t i = chain_.links.size(); i-- > 0;) {
      for (size_t shard = 0; shard < chain_.links[i].footers.size(); ++shard) {
        status = ReadShard(i, shard);
        if (!status.ok()) return status;
      }
    }
    return absl::OkStatus();
  }

 private:
  bool IsRead(const PartKey& key, const Part& part) const {
    if (part.kind == TableKind::kDense) return plan_.count(key) > 0;
    const auto& [link, shard, index] = key;
    return IsWantedSparse(part) &&
           (shard == wanted_.shard || !IsPlacedAlike(link, part.table));
  }

  bool IsWantedSparse(const Part& part) const {
    return part.kind == TableKind::kSparse && wanted_.holds != nullptr &&
           ours_[part.table] != kNone;
  }

  // Returns true if the ids of a sparse table were distributed over the servers
  // in the same way when the checkpoint was written.
  bool IsPlacedAlike(size_t link, size_t table) const {
    const auto& placements = chain_.links[link].manifest.placements;
    return !placements.empty() && !wanted_.placements.empty() &&
           placements[table] == wanted_.placements[ours_[table]];
  }

  absl::Status TakeSparseSteps() {
    for (const Link& link : chain_.links) {
      for (const Footer& footer : link.footers) {
        for (const Part& part : footer.parts) {
          if (!IsWantedSparse(part)) continue;
          absl::Status status =
              sink_->TakeSparseStep(ours_[part.table], part.step);
          if (!status.ok()) return status;
        }
      }
    }
    return absl::OkStatus();
  }

  void CountBytes() {
    for (size_t i = 0; i < chain_.links.size(); ++i) {
      for (size_t j = 0; j < chain_.links[i].footers.size(); ++j) {
        const std::vector<Part>& parts = chain_.links[i].footers[j].parts;
        for (size_t k = 0; k < parts.size(); ++k) {
          if (IsRead({i, j, k}, parts[k])) total_ += parts[k].bytes;
        }
      }
    }
  }

  absl::Status ReadShard(size_t link_index, size_t shard) {
    const Link& link = chain_.links[link_index];
    const std::vector<Part>& parts = link.footers[shard].parts;
    std::unique_ptr<ShardReader> reader;
    for (size_t i = 0; i < parts.size(); ++i) {
      const PartKey key = {link_index, shard, i};
      if (!IsRead(key, parts[i])) continue;
      if (reader == nullptr) {
        auto opened = ShardReader::Open(files_, &link.manifest.model,
                                        link.manifest.attempt,
                                        link.manifest.shards[shard]);
        if (!opened.ok()) return opened.status();
        reader = *std::move(opened);
      }
      PartCursor cursor(reader.get(), &reader->footer().parts[i]);
      absl::Status status = parts[i].kind == TableKind::kDense
                                ? ReadDense(&cursor, parts[i], plan_[key])
                                : ReadSparse(&cursor, parts[i]);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadDense(PartCursor* cursor, const Part& part,
                         const std::vector<RowSpan>& spans) {
    while (!cursor->AtEnd()) {
      const auto header = cursor->Next();
      if (!header.ok()) return header.status();
      absl::Status status = TakeElements(cursor, part, *header, spans);
      if (status.ok()) status = Count(*header);
      if (!status.ok()) return status;
    }
    return cursor->Finish();
  }

  // Passes the wanted elements of a block to the sink.
  absl::Status TakeElements(PartCursor* cursor, const Part& part,
                            const BlockHeader& header,
                            const std::vector<RowSpan>& spans) {
    const TableDefinition& table = chain_.model().tables[part.table];
    const uint64_t row = RowElements(table);
    const size_t size = tensor::ElementSize(StreamType(table, header.stream));
    const uint64_t end = header.first + header.length / size;
    auto span = std::partition_point(
        spans.begin(), spans.end(),
        [&](const RowSpan& each) { return each.end * row <= header.first; });
    absl::string_view payload;
    for (; span != spans.end() && span->first * row < end; ++span) {
      if (payload.empty()) {
        const auto bytes = cursor->Payload();
        if (!bytes.ok()) return bytes.status();
        payload = *bytes;
      }
      const uint64_t from = std::max(header.first, span->first * row);
      const uint64_t to = std::min(end, span->end * row);
      DenseElements elements;
      elements.table = ours_[part.table];
      elements.stream = header.stream;
      elements.first = from;
      elements.step = part.step;
      elements.bytes =
          payload.substr((from - header.first) * size, (to - from) * size);
      absl::Status status = sink_->TakeDense(elements);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status ReadSparse(PartCursor* cursor, const Part& part) {
    absl::Status status;
    while (status.ok() && !cursor->AtEnd()) {
      const auto header = cursor->Next();
      if (!header.ok()) return header.status();
      const auto payload = cursor->Payload();
      if (!payload.ok()) return payload.status();
      status = header->kind == BlockKind::kRows
                   ? TakeRows(part.table, *payload)
                   : DropRows(part.table, *payload);
      if (status.ok()) status = Count(*header);
    }
    return status.ok() ? cursor->Finish() : status;
  }

  absl::Status TakeRows(size_t table, absl::string_view payload) {
    const size_t bytes = RowBytes(chain_.model().tables[table]);
    const size_t ours = ours_[table];
    while (!payload.empty()) {
      SparseRow row;
      row.id = Take<uint64_t>(&payload);
      row.last_use = Take<uint64_t>(&payload);
      row.count = Take<uint64_t>(&payload);
      row.bytes = payload.substr(0, bytes);
      payload.remove_prefix(bytes);
      if (!wanted_.holds(ours, row.id)) continue;
      absl::Status status = sink_->TakeRow(ours, row);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status DropRows(size_t table, absl::string_view payload) {
    const size_t ours = ours_[table];
    while (!payload.empty()) {
      const auto id = Take<uint64_t>(&payload);
      if (!wanted_.holds(ours, id)) continue;
      absl::Status status = sink_->DropRow(ours, id);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Count(const BlockHeader& header) {
    done_ += kBlockHeaderBytes + header.length;
    if (progress_ == nullptr || progress_(done_, total_)) {
      return absl::OkStatus();
    }
    return absl::CancelledError("restore: cancelled");
  }

  Files* const files_;
  const Chain& chain_;
  const Wanted& wanted_;
  Sink* const sink_;
  const Progress& progress_;
  const std::vector<size_t> ours_;    // by index in the checkpoint's model
  const std::vector<size_t> theirs_;  // by index in the server's
  DensePlan plan_;
  uint64_t done_ = 0;
  uint64_t total_ = 0;
};

}  // namespace

absl::Status Restore(Files* files, const Chain& chain, const Model& model,
                     const Wanted& wanted, Sink* sink,
                     const Progress& progress) {
  absl::Status status = CheckModel(model);
  if (!status.ok()) return status;
  const std::string difference =
      wanted.may_drop_tables ? DifferenceOfCommon(chain.model(), model)
                             : DifferenceButForNew(chain.model(), model);
  if (!difference.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("the checkpoint is of another model: ", difference));
  }
  return Restorer(files, chain, model, wanted, sink, progress).Run();
}

}  // namespace penstock::ps::checkpoint
