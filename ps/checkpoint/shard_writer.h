// Writes one shard of a checkpoint.

#ifndef PENSTOCK_PS_CHECKPOINT_SHARD_WRITER_H_
#define PENSTOCK_PS_CHECKPOINT_SHARD_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/format.h"
#include "ps/checkpoint/model.h"
#include "ps/checkpoint/records.h"

namespace penstock::ps::checkpoint {

// Names one attempt to write a checkpoint, see Repository::Begin().
struct Attempt {
  uint64_t step = 0;
  uint64_t id = 0;
};

// What the repository has to know of a shard that is written.
struct ShardInfo {
  uint32_t shard = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // the footer's
};

// Writes a shard file from its beginning to its end, block by block, and holds
// no more than one block: dense values are written from where they lie.
//
// After an error every call returns that error. A writer that is destroyed
// before Finish() has succeeded removes its file. Not thread-safe; one server
// may write several shards at once, by several writers.
class ShardWriter {
 public:
  // `shard` is the shard's index in the checkpoint. `files` and `model`, which
  // CheckModel() has found well, outlive the writer.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(
      Files* files, const Model* model, const Attempt& attempt, uint32_t shard);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Writes rows of a dense table. Returns INVALID_ARGUMENT if they are not in
  // the table, or have other bytes than their definition says.
  absl::Status AddDense(const DensePart& part);

  // Begins what the server holds of a sparse table: all rows, or, in an
  // incremental checkpoint, those changed or removed since the base. `step` is
  // the table's.
  absl::Status BeginSparse(size_t table, uint64_t step);
  // Add a row, or say that there is none of this id anymore, in the table that
  // was begun. Later ones of an id replace earlier ones.
  absl::Status AddRow(const SparseRow& row);
  absl::Status RemoveRow(uint64_t id);

  // Ends the file and returns when it is on the disk. `clocks` are this
  // server's.
  absl::StatusOr<ShardInfo> Finish(std::vector<WorkerClock> clocks);

 private:
  ShardWriter(Files* files, const Model* model, const Attempt& attempt,
              uint32_t shard, std::unique_ptr<WritableFile> file);

  absl::Status CheckPart(const DensePart& part) const;
  absl::Status CheckSparse(absl::string_view call) const;
  absl::Status WriteStream(const DensePart& part, size_t stream);
  // Writes the block that sparse rows or ids gather in.
  absl::Status WriteGathered();
  absl::Status Gather(BlockKind kind);
  void BeginPart(TableKind kind, size_t table, uint64_t step);
  absl::Status EndPart();
  absl::Status WriteBlock(BlockHeader header, absl::string_view payload);
  absl::Status Write(absl::string_view bytes);
  absl::StatusOr<ShardInfo> WriteEnd();
  // Keeps the first error.
  absl::Status Keep(absl::Status status);

  Files* const files_;
  const Model* const model_;
  const Attempt attempt_;
  const std::string path_;
  std::unique_ptr<WritableFile> file_;
  absl::Status error_;
  bool finished_ = false;
  uint64_t offset_ = 0;
  bool in_part_ = false;  // footer_.parts.back() is open
  Footer footer_;
  // Sparse: the block that is gathered.
  BlockKind gathered_kind_ = BlockKind::kRows;
  uint32_t gathered_count_ = 0;
  std::string gathered_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_SHARD_WRITER_H_
