#include "ps/checkpoint/shard_writer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/little_endian.h"
#include "ps/checkpoint/names.h"
#include "tensor_service/checksum.h"
#include "tensor_service/text.h"

namespace penstock::ps::checkpoint {
namespace {

absl::Status Bad(const TableDefinition& table, absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "table '", tensor::Quoted(table.name), "' in a checkpoint: ", what));
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardWriter>> ShardWriter::Create(
    Files* files, const Model* model, const Attempt& attempt, uint32_t shard) {
  auto file = files->Create(ShardPath(attempt.step, shard, attempt.id));
  if (!file.ok()) return file.status();
  std::unique_ptr<ShardWriter> writer(
      new ShardWriter(files, model, attempt, shard, *std::move(file)));
  absl::Status status = writer->Write(Encode(FileHeader{shard, attempt.id}));
  if (!status.ok()) return status;
  return writer;
}

ShardWriter::ShardWriter(Files* files, const Model* model,
                         const Attempt& attempt, uint32_t shard,
                         std::unique_ptr<WritableFile> file)
    : files_(files),
      model_(model),
      attempt_(attempt),
      path_(ShardPath(attempt.step, shard, attempt.id)),
      file_(std::move(file)) {
  footer_.shard = shard;
  footer_.id = attempt.id;
}

ShardWriter::~ShardWriter() {
  if (finished_) return;
  file_.reset();
  // Ignore an error: the next Repository::Open() removes a file that cannot be
  // removed now.
  files_->Remove(path_).IgnoreError();
}

absl::Status ShardWriter::AddDense(const DensePart& part) {
  absl::Status status = EndPart();
  if (status.ok()) status = Keep(CheckPart(part));
  if (!status.ok()) return status;
  BeginPart(TableKind::kDense, part.table, part.step);
  footer_.parts.back().first_row = part.first_row;
  footer_.parts.back().rows = part.rows;
  for (size_t i = 0; status.ok() && i < part.streams.size(); ++i) {
    status = WriteStream(part, i);
  }
  return status.ok() ? EndPart() : status;
}

absl::Status ShardWriter::CheckPart(const DensePart& part) const {
  if (part.table >= model_->tables.size()) {
    return absl::InvalidArgumentError("no such table in the model");
  }
  const TableDefinition& table = model_->tables[part.table];
  if (table.kind != TableKind::kDense) return Bad(table, "it is not dense");
  const uint64_t rows = Rows(table);
  if (part.first_row > rows || part.rows > rows - part.first_row) {
    return Bad(table, absl::StrCat(part.rows, " rows from ", part.first_row,
                                   " on; it has ", rows));
  }
  if (part.streams.size() != Streams(table)) {
    return Bad(table, absl::StrCat(part.streams.size() - 1, " slots; it has ",
                                   table.slots.size()));
  }
  for (size_t i = 0; i < part.streams.size(); ++i) {
    const uint64_t bytes = part.rows * RowElements(table) *
                           tensor::ElementSize(StreamType(table, i));
    if (part.streams[i].size() != bytes) {
      return Bad(table, absl::StrCat(part.streams[i].size(), " bytes of ",
                                     i == 0 ? "the value" : "a slot",
                                     "; its rows have ", bytes));
    }
  }
  return absl::OkStatus();
}

absl::Status ShardWriter::WriteStream(const DensePart& part, size_t stream) {
  const TableDefinition& table = model_->tables[part.table];
  BlockHeader header;
  header.kind = BlockKind::kDense;
  header.table = static_cast<uint32_t>(part.table);
  header.stream = static_cast<uint32_t>(stream);
  header.first = part.first_row * RowElements(table);
  const size_t element = tensor::ElementSize(StreamType(table, stream));
  absl::string_view rest = part.streams[stream];
  while (!rest.empty()) {
    const absl::string_view payload = rest.substr(0, kBlockBytes);
    absl::Status status = WriteBlock(header, payload);
    if (!status.ok()) return status;
    header.first += payload.size() / element;
    rest.remove_prefix(payload.size());
  }
  return absl::OkStatus();
}

absl::Status ShardWriter::BeginSparse(size_t table, uint64_t step) {
  absl::Status status = EndPart();
  if (!status.ok()) return status;
  if (table >= model_->tables.size()) {
    return Keep(absl::InvalidArgumentError("no such table in the model"));
  }
  if (model_->tables[table].kind != TableKind::kSparse) {
    return Keep(Bad(model_->tables[table], "it is not sparse"));
  }
  BeginPart(TableKind::kSparse, table, step);
  return absl::OkStatus();
}

absl::Status ShardWriter::CheckSparse(absl::string_view call) const {
  if (!error_.ok()) return error_;
  if (in_part_ && footer_.parts.back().kind == TableKind::kSparse) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      absl::StrCat(call, " outside of a sparse table"));
}

absl::Status ShardWriter::AddRow(const SparseRow& row) {
  absl::Status status = Keep(CheckSparse("AddRow"));
  if (!status.ok()) return status;
  const TableDefinition& table = model_->tables[footer_.parts.back().table];
  const uint64_t bytes = RowBytes(table);
  if (row.bytes.size() != bytes) {
    return Keep(Bad(table, absl::StrCat("a row of ", row.bytes.size(),
                                        " bytes; it has ", bytes)));
  }
  status = Gather(BlockKind::kRows);
  if (!status.ok()) return status;
  Put(row.id, &gathered_);
  Put(row.last_use, &gathered_);
  Put(row.count, &gathered_);
  gathered_.append(row.bytes.data(), row.bytes.size());
  ++footer_.parts.back().rows;
  return gathered_.size() < kBlockBytes ? status : WriteGathered();
}

absl::Status ShardWriter::RemoveRow(uint64_t id) {
  absl::Status status = Keep(CheckSparse("RemoveRow"));
  if (status.ok()) status = Gather(BlockKind::kRemoved);
  if (!status.ok()) return status;
  Put(id, &gathered_);
  ++footer_.parts.back().removed;
  return gathered_.size() < kBlockBytes ? status : WriteGathered();
}

// Counts one more row or id of `kind` in the collected block. If the collected
// block is of another kind, writes that block first.
absl::Status ShardWriter::Gather(BlockKind kind) {
  if (gathered_kind_ != kind) {
    absl::Status status = WriteGathered();
    if (!status.ok()) return status;
    gathered_kind_ = kind;
  }
  ++gathered_count_;
  return absl::OkStatus();
}

absl::Status ShardWriter::WriteGathered() {
  if (gathered_count_ == 0) return error_;
  BlockHeader header;
  header.kind = gathered_kind_;
  header.table = footer_.parts.back().table;
  header.count = gathered_count_;
  absl::Status status = WriteBlock(header, gathered_);
  gathered_.clear();
  gathered_count_ = 0;
  return status;
}

void ShardWriter::BeginPart(TableKind kind, size_t table, uint64_t step) {
  Part part;
  part.kind = kind;
  part.table = static_cast<uint32_t>(table);
  part.offset = offset_;
  part.step = step;
  footer_.parts.push_back(part);
  in_part_ = true;
}

absl::Status ShardWriter::EndPart() {
  if (!error_.ok() || !in_part_) return error_;
  absl::Status status = WriteGathered();
  footer_.parts.back().bytes = offset_ - footer_.parts.back().offset;
  in_part_ = false;
  return status;
}

absl::Status ShardWriter::WriteBlock(BlockHeader header,
                                     absl::string_view payload) {
  Part& part = footer_.parts.back();
  header.number = part.blocks++;
  header.length = payload.size();
  header.checksum = tensor::ChecksumOf(payload);
  const std::string head = Encode(header, attempt_.id);
  part.digest = Digest(part.digest, head);
  absl::Status status = Write(head);
  return status.ok() ? Write(payload) : status;
}

absl::Status ShardWriter::Write(absl::string_view bytes) {
  offset_ += bytes.size();
  return Keep(WriteAll(file_.get(), bytes));
}

absl::StatusOr<ShardInfo> ShardWriter::Finish(std::vector<WorkerClock> clocks) {
  absl::Status status = EndPart();
  if (!status.ok()) return status;
  footer_.clocks = std::move(clocks);
  absl::StatusOr<ShardInfo> info = WriteEnd();
  if (!info.ok()) return Keep(info.status());
  finished_ = true;
  error_ = absl::FailedPreconditionError("the shard is finished");
  return info;
}

absl::StatusOr<ShardInfo> ShardWriter::WriteEnd() {
  const std::string footer = Encode(footer_);
  if (footer.size() > kMaxFooterBytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        path_, ": ", footer_.parts.size(), " parts of tables and ",
        footer_.clocks.size(), " clocks are too many for one shard"));
  }
  Trailer trailer;
  trailer.offset = offset_;
  trailer.length = footer.size();
  trailer.checksum = tensor::ChecksumOf(footer);
  absl::Status status = Write(footer + Encode(trailer));
  if (status.ok()) status = file_->Sync();
  // Make the file's name durable, too. On a shared file system, the
  // repository's sync covers only changes of its own host.
  if (status.ok()) status = files_->SyncFolder(StepFolder(attempt_.step));
  if (!status.ok()) return status;
  file_.reset();
  return ShardInfo{footer_.shard, offset_, trailer.checksum};
}

absl::Status ShardWriter::Keep(absl::Status status) {
  if (error_.ok()) error_ = std::move(status);
  return error_;
}

}  // namespace penstock::ps::checkpoint
