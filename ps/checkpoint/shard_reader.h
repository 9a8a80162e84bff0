// Reads one shard of a checkpoint, and validates every byte read.

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

// A shard whose header, footer and trailer are undamaged, and agree with the
// manifest and the model. A PartCursor reads the blocks.
//
// Holds the footer in memory, which has at most kMaxFooterBytes in the file.
// Errors name the file. Returns DATA_LOSS if the file is damaged, NOT_FOUND if
// missing, FAILED_PRECONDITION if of a newer format or not a regular file. Not
// thread-safe.
class ShardReader {
 public:
  // Opens the shard that `info`, an entry of the manifest, describes. `model`
  // is the checkpoint's model, and must outlive the reader.
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

// A cursor over the blocks of a part. Reads each header, and the requested
// payloads. Holds one block.
//
//   PartCursor cursor(reader, part);
//   while (!cursor.AtEnd()) {
//     header = cursor.Next();   // an error: nothing further can be read
//     bytes = cursor.Payload(); // an error: the next block can be read
//   }
//   cursor.Finish();
class PartCursor {
 public:
  // Starts at the beginning of `part`, which belongs to the reader's footer.
  // `reader` and `part` must outlive the cursor.
  PartCursor(ShardReader* reader, const Part* part);

  bool AtEnd() const { return blocks_ == part_->blocks; }
  // Returns the number of the current block in its part, from 1 on.
  uint64_t block() const { return blocks_; }

  // Moves to the next block and returns its header. Returns DATA_LOSS unless
  // the block belongs to this part, continues the previous block, and has the
  // length of its rows.
  absl::StatusOr<BlockHeader> Next();
  // Returns the bytes of the current block. Bytes are valid until the next
  // call.
  absl::StatusOr<absl::string_view> Payload();
  // Ends the reading of the part. Returns DATA_LOSS unless the part is
  // complete.
  absl::Status Finish();

 private:
  absl::StatusOr<BlockHeader> ReadHeader();
  absl::Status Check(const BlockHeader& header);
  absl::Status CheckDense(const BlockHeader& header);
  absl::Status CheckSparse(const BlockHeader& header);
  // Moves to the stream of the next block. Skips streams that are complete.
  void SkipFullStreams();
  absl::Status Damaged(absl::string_view what) const;
  // Returns `status`, whose message names the current block.
  absl::Status InBlock(const absl::Status& status) const;

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
