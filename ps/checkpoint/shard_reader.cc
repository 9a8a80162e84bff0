#include "ps/checkpoint/shard_reader.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/checkpoint/names.h"
#include "tensor_service/checksum.h"
#include "tensor_service/text.h"

namespace penstock::ps::checkpoint {
namespace {

absl::Status DataLoss(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": ", what));
}

// Returns `status` with the file's name at the beginning of its message.
absl::Status In(absl::string_view path, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat(path, ": ", status.message()));
}

absl::StatusOr<std::string> ReadBytes(ReadableFile* file, uint64_t offset,
                                      size_t size) {
  std::string bytes(size, '\0');
  absl::Status status = ReadExactly(file, offset, &bytes[0], size);
  if (!status.ok()) return status;
  return bytes;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ShardReader>> ShardReader::Open(
    Files* files, const Model* model, const Attempt& attempt,
    const ShardInfo& info) {
  const std::string path = ShardPath(attempt.step, info.shard, attempt.id);
  auto file = files->Open(path);
  if (absl::IsNotFound(file.status())) {
    return absl::NotFoundError(absl::StrCat(path, ": the shard is missing"));
  }
  if (!file.ok()) return file.status();
  std::unique_ptr<ShardReader> reader(
      new ShardReader(model, path, *std::move(file)));
  absl::Status status = reader->ReadEnds(attempt, info);
  if (!status.ok()) return In(path, status);
  return reader;
}

absl::Status ShardReader::ReadEnds(const Attempt& attempt,
                                   const ShardInfo& info) {
  const auto bytes = ReadBytes(file_.get(), 0, kFileHeaderBytes);
  if (!bytes.ok()) return bytes.status();
  const auto header = DecodeFileHeader(*bytes);
  if (!header.ok()) return header.status();
  if (header->shard != info.shard || header->id != attempt.id) {
    return absl::DataLossError("it is another checkpoint's shard");
  }
  if (file_->size() != info.bytes) {
    return absl::DataLossError(absl::StrCat(
        "has ", file_->size(), " bytes; the manifest says ", info.bytes));
  }
  absl::Status status = ReadFooter(info);
  if (!status.ok()) return status;
  if (footer_.shard != info.shard || footer_.id != attempt.id) {
    return absl::DataLossError("the footer is another shard's");
  }
  return status;
}

absl::Status ShardReader::ReadFooter(const ShardInfo& info) {
  if (info.bytes < kFileHeaderBytes + kTrailerBytes) {
    return absl::DataLossError("truncated");
  }
  const uint64_t end = info.bytes - kTrailerBytes;
  const auto tail = ReadBytes(file_.get(), end, kTrailerBytes);
  if (!tail.ok()) return tail.status();
  const auto trailer = DecodeTrailer(*tail);
  if (!trailer.ok()) return trailer.status();
  if (trailer->length > kMaxFooterBytes || trailer->length > end ||
      trailer->offset != end - trailer->length) {
    return absl::DataLossError("damaged: the footer is not where it should be");
  }
  const auto bytes = ReadBytes(file_.get(), trailer->offset, trailer->length);
  if (!bytes.ok()) return bytes.status();
  if (trailer->checksum != info.checksum ||
      tensor::ChecksumOf(*bytes) != info.checksum) {
    return absl::DataLossError("damaged: the footer's checksum differs");
  }
  absl::StatusOr<Footer> footer = DecodeFooter(*bytes);
  if (!footer.ok()) return footer.status();
  footer_ = *std::move(footer);
  return CheckParts(trailer->offset);
}

// Checks that the parts fill the file from the header to `blocks_end`, without
// gaps or overlaps.
absl::Status ShardReader::CheckParts(uint64_t blocks_end) const {
  uint64_t offset = kFileHeaderBytes;
  for (const Part& part : footer_.parts) {
    if (part.offset != offset || part.bytes > blocks_end - offset) {
      return absl::DataLossError("damaged: the footer's parts do not fit");
    }
    offset += part.bytes;
    absl::Status status = CheckPart(part);
    if (!status.ok()) return status;
  }
  if (offset == blocks_end) return absl::OkStatus();
  return absl::DataLossError("damaged: bytes that belong to no part");
}

absl::Status ShardReader::CheckPart(const Part& part) const {
  if (part.table >= model_->tables.size() ||
      part.kind != model_->tables[part.table].kind) {
    return absl::DataLossError("damaged: a part of a table that is not there");
  }
  const TableDefinition& table = model_->tables[part.table];
  if (part.kind == TableKind::kDense) {
    const uint64_t rows = Rows(table);
    if (part.first_row <= rows && part.rows <= rows - part.first_row) {
      return absl::OkStatus();
    }
    return absl::DataLossError(absl::StrCat("damaged: rows beyond the end of '",
                                            tensor::Quoted(table.name), "'"));
  }
  // Refuses impossible counts. The check allows one row and one removed id per
  // byte, although each takes at least eight bytes.
  if (part.rows <= part.bytes && part.removed <= part.bytes) {
    return absl::OkStatus();
  }
  return absl::DataLossError("damaged: more rows than bytes");
}

PartCursor::PartCursor(ShardReader* reader, const Part* part)
    : reader_(reader),
      part_(part),
      table_(reader->model_->tables[part->table]),
      offset_(part->offset) {
  if (part->kind == TableKind::kDense) SkipFullStreams();
}

absl::Status PartCursor::Damaged(absl::string_view what) const {
  return InBlock(absl::DataLossError(what));
}

absl::Status PartCursor::InBlock(const absl::Status& status) const {
  return absl::Status(
      status.code(),
      absl::StrCat(reader_->path_, ": block ", blocks_, " of ", part_->blocks,
                   " of table '", tensor::Quoted(table_.name),
                   "': ", status.message()));
}

absl::StatusOr<BlockHeader> PartCursor::Next() {
  ++blocks_;
  absl::StatusOr<BlockHeader> header = ReadHeader();
  if (!header.ok()) return InBlock(header.status());
  absl::Status status = Check(*header);
  if (!status.ok()) return status;
  header_ = *header;
  payload_offset_ = offset_ + kBlockHeaderBytes;
  offset_ = payload_offset_ + header_.length;
  return header;
}

absl::StatusOr<BlockHeader> PartCursor::ReadHeader() {
  const uint64_t left = part_->bytes - (offset_ - part_->offset);
  if (left < kBlockHeaderBytes) {
    return absl::DataLossError("it is beyond the part's end");
  }
  char bytes[kBlockHeaderBytes];
  absl::Status status =
      ReadExactly(reader_->file_.get(), offset_, bytes, sizeof bytes);
  if (!status.ok()) return status;
  const absl::string_view encoded(bytes, sizeof bytes);
  absl::StatusOr<BlockHeader> header =
      DecodeBlockHeader(encoded, reader_->footer_.id);
  if (!header.ok()) return header;
  if (header->length > left - kBlockHeaderBytes) {
    return absl::DataLossError("it does not end in its part");
  }
  digest_ = Digest(digest_, encoded);
  return header;
}

absl::Status PartCursor::Check(const BlockHeader& header) {
  if (header.number != blocks_ - 1 || header.table != part_->table) {
    return Damaged("another block is in its place");
  }
  return part_->kind == TableKind::kDense ? CheckDense(header)
                                          : CheckSparse(header);
}

void PartCursor::SkipFullStreams() {
  while (stream_ < Streams(table_) &&
         elements_ == part_->rows * RowElements(table_)) {
    ++stream_;
    elements_ = 0;
    if (part_->rows * RowElements(table_) == 0) stream_ = Streams(table_);
  }
}

absl::Status PartCursor::CheckDense(const BlockHeader& header) {
  if (header.kind != BlockKind::kDense || stream_ >= Streams(table_) ||
      header.stream != stream_ ||
      header.first != part_->first_row * RowElements(table_) + elements_) {
    return Damaged("it does not continue the block before it");
  }
  const size_t element = tensor::ElementSize(StreamType(table_, stream_));
  const uint64_t most = part_->rows * RowElements(table_) - elements_;
  if (header.length == 0 || header.length % element != 0 ||
      header.length / element > most) {
    return Damaged("its length is not that of its rows");
  }
  elements_ += header.length / element;
  SkipFullStreams();
  return absl::OkStatus();
}

absl::Status PartCursor::CheckSparse(const BlockHeader& header) {
  const bool is_removed = header.kind == BlockKind::kRemoved;
  if (!is_removed && header.kind != BlockKind::kRows) {
    return Damaged("it is not of a sparse table");
  }
  const uint64_t each =
      is_removed ? sizeof(uint64_t) : kRowHeadBytes + RowBytes(table_);
  if (header.count == 0 || header.length != header.count * each) {
    return Damaged("its length is not that of its rows");
  }
  (is_removed ? removed_ : rows_) += header.count;
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> PartCursor::Payload() {
  payload_.resize(header_.length);
  absl::Status status = ReadExactly(reader_->file_.get(), payload_offset_,
                                    &payload_[0], payload_.size());
  if (!status.ok()) return InBlock(status);
  if (tensor::ChecksumOf(payload_) != header_.checksum) {
    return Damaged("the checksum of its bytes differs");
  }
  return absl::string_view(payload_);
}

absl::Status PartCursor::Finish() {
  const bool is_whole =
      part_->kind == TableKind::kDense
          ? stream_ == Streams(table_)
          : rows_ == part_->rows && removed_ == part_->removed;
  if (AtEnd() && is_whole && offset_ == part_->offset + part_->bytes &&
      digest_ == part_->digest) {
    return absl::OkStatus();
  }
  return DataLoss(
      reader_->path_,
      absl::StrCat("the blocks of table '", tensor::Quoted(table_.name),
                   "' are not all that were written"));
}

}  // namespace penstock::ps::checkpoint
