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

// One attempt to write a checkpoint; see Repository::Begin().
struct Attempt {
  uint64_t step = 0;
  uint64_t id = 0;
};

// A description of a written shard, for the repository.
struct ShardInfo {
  uint32_t shard = 0;
  uint64_t bytes = 0;
  uint64_t checksum = 0;  // the footer's
};

// A writer of one shard file, from beginning to end, block by block. Holds at
// most one block: dense values are written from their own memory, without a
// copy.
//
// After an error every call returns that error. A writer that is destroyed
// before Finish() has succeeded removes its file. Not thread-safe. One server
// may write several shards concurrently, with several writers.
class ShardWriter {
 public:
  // Creates the file of a shard. `shard` is the shard's index in the
  // checkpoint. `files` and `model` must outlive the writer. CheckModel() must
  // have accepted `model`.
  static absl::StatusOr<std::unique_ptr<ShardWriter>> Create(
      Files* files, const Model* model, const Attempt& attempt, uint32_t shard);
  ~ShardWriter();
  ShardWriter(const ShardWriter&) = delete;
  ShardWriter& operator=(const ShardWriter&) = delete;

  // Writes rows of a dense table. Returns INVALID_ARGUMENT if the rows are not
  // in the table, or have the wrong number of bytes.
  absl::Status AddDense(const DensePart& part);

  // Begins the server's part of a sparse table: all rows, or, in an incremental
  // checkpoint, rows changed or removed since the base. `step` is the table's
  // step.
  absl::Status BeginSparse(size_t table, uint64_t step);
  // Add a row, or record the removal of a row, in the table begun last. Later
  // calls for an id replace earlier calls.
  absl::Status AddRow(const SparseRow& row);
  absl::Status RemoveRow(uint64_t id);

  // Ends the file. Blocks until the file is durable. `clocks` are this server's
  // clocks.
  absl::StatusOr<ShardInfo> Finish(std::vector<WorkerClock> clocks);

 private:
  ShardWriter(Files* files, const Model* model, const Attempt& attempt,
              uint32_t shard, std::unique_ptr<WritableFile> file);

  absl::Status CheckPart(const DensePart& part) const;
  absl::Status CheckSparse(absl::string_view call) const;
  absl::Status WriteStream(const DensePart& part, size_t stream);
  // Writes the collected sparse rows or ids as one block.
  absl::Status WriteGathered();
  absl::Status Gather(BlockKind kind);
  void BeginPart(TableKind kind, size_t table, uint64_t step);
  absl::Status EndPart();
  absl::Status WriteBlock(BlockHeader header, absl::string_view payload);
  absl::Status Write(absl::string_view bytes);
  absl::StatusOr<ShardInfo> WriteEnd();
  // Stores the first error, and returns it.
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
  // The kind of the sparse block that is being collected.
  BlockKind gathered_kind_ = BlockKind::kRows;
  uint32_t gathered_count_ = 0;
  std::string gathered_;
};

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_SHARD_WRITER_H_
