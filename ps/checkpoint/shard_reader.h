// Reads one shard of a checkpoint, and believes nothing that it reads.

#ifndef PENSTOCK_PS_CHECKPOINT_SHARD_READER_H_
#define PENSTOCK_PS_CHECKPOINT_SHARD_READER_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/format.h"
#include "ps/checkpoint/model.h"
#include "ps/checkpoint/shard_writer.h"

namespace penstock::ps::checkpoint {

// A shard whose header, footer and trailer are whole, and agree with the
// manifest and the model. Its blocks are read by a PartCursor.
//
// Holds the footer, which is as long as it is in the file, and no more than
// kMaxFooterBytes. Errors name the file; DATA_LOSS: damaged, NOT_FOUND: there
// is none, FAILED_PRECONDITION: newer, or no regular file. Not thread-safe.
class ShardReader {
 public:
  // Opens the shard that `info`, of the manifest, is about. `model` is the
  // checkpoint's, and outlives the reader.
  static absl::StatusOr<std::unique_ptr<ShardReader>> Open(
      Files* files, const Model* model, const Attempt& attempt,
      const ShardInfo& info);

  const Footer& footer() const { return footer_; }
  const std::string& path() const { return path_; }

 private:
  friend class PartCursor;
  ShardReader(const Model* model, std::string path,
              std::unique_ptr<ReadableFile> file)
      : model_(model), path_(std::move(path)), file_(std::move(file)) {}

  absl::Status ReadEnds(const Attempt& attempt, const ShardInfo& info);
  absl::Status ReadFooter(const ShardInfo& info);
  absl::Status CheckParts(uint64_t blocks_end) const;
  absl::Status CheckPart(const Part& part) const;

  const Model* const model_;
  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  Footer footer_;
};

// Goes through the blocks of a part. Reads each header, and of payloads those
// that are asked for. Holds one block.
//
//   PartCursor cursor(reader, part);
//   while (!cursor.AtEnd()) {
//     header = cursor.Next();   // an error: nothing behind it can be read
//     bytes = cursor.Payload(); // an error: the next block can be read
//   }
//   cursor.Finish();
class PartCursor {
 public:
  // `part` is one of the reader's footer. Both must outlive the cursor.
  PartCursor(ShardReader* reader, const Part* part);

  bool AtEnd() const { return blocks_ == part_->blocks; }
  // The block in its part, from 1 on, that the last call was about.
  uint64_t block() const { return blocks_; }

  // Returns the next block's header: it is of this part, continues the one
  // before, and its length is what its rows have.
  absl::StatusOr<BlockHeader> Next();
  // Returns the bytes of that block, which are valid until the next call.
  absl::StatusOr<absl::string_view> Payload();
  // Returns DATA_LOSS unless the blocks are all that was written.
  absl::Status Finish();

 private:
  absl::StatusOr<BlockHeader> ReadHeader();
  absl::Status Check(const BlockHeader& header);
  absl::Status CheckDense(const BlockHeader& header);
  absl::Status CheckSparse(const BlockHeader& header);
  // Goes to the stream of the next block, past those that are complete.
  void SkipFullStreams();
  absl::Status Damaged(absl::string_view what) const;

  ShardReader* const reader_;
  const Part* const part_;
  const TableDefinition& table_;
  uint64_t offset_;
  uint64_t blocks_ = 0;
  uint64_t digest_ = 0;
  BlockHeader header_;
  uint64_t payload_offset_ = 0;
  size_t stream_ = 0;
  uint64_t elements_ = 0;  // of the stream so far
  uint64_t rows_ = 0;
  uint64_t removed_ = 0;
  std::string payload_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_SHARD_READER_H_
