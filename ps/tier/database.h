// RocksDB in a folder that ends with the process.

#ifndef PENSTOCK_PS_TIER_DATABASE_H_
#define PENSTOCK_PS_TIER_DATABASE_H_

#include <rocksdb/db.h>
#include <rocksdb/env.h>
#include <rocksdb/options.h>
#include <rocksdb/status.h>
#include <rocksdb/write_batch.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/tier/disk_calls.h"
#include "ps/tier/scratch_folder.h"
#include "ps/tier/shortage.h"
#include "ps/tier/tier_file_system.h"

namespace penstock::ps {

absl::Status StatusOf(const rocksdb::Status& status);

// A full disk, or one that fails, costs refused writes and nothing else: what
// was written stays, and once the disk takes writes again, so does the
// database. Thread-safe.
class Database {
 public:
  struct Options {
    // Where it makes a folder of its own.
    std::string folder;
    // Half for rows that wait to be written, half for blocks that were read.
    size_t memory_bytes = 0;
    // A write that finds the memory for rows used up waits so long at most.
    absl::Duration longest_stall;
  };

  // Errors name the folder. `calls` outlives the database.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const Options& options,
                                                        DiskCalls* calls);
  // Does not wait for the disk to have room.
  ~Database();

  // For reads.
  rocksdb::DB* db() const { return db_.get(); }

  // Applies `batch`. Blocks while memory for rows is used up and the disk takes
  // some. Returns RESOURCE_EXHAUSTED without any effect if the disk does not,
  // or after the longest stall.
  absl::Status Write(rocksdb::WriteBatch* batch);

  // Returns for how many bytes of rows the disk has room: half of what it has
  // free, as RocksDB needs as much again to rewrite them, less what is not to
  // be used up. 0 while the disk takes no writes.
  uint64_t BytesLeft() const;

 private:
  Database(const Options& options, std::unique_ptr<ScratchFolder> folder,
           DiskCalls* calls);
  rocksdb::Options RocksOptions() const;
  // Bytes of rows that wait to be written.
  uint64_t Unwritten() const;

  const Options options_;
  DiskCalls* const calls_;
  const std::unique_ptr<ScratchFolder> folder_;
  Shortage shortage_;
  const std::shared_ptr<TierFileSystem> files_;
  const std::unique_ptr<rocksdb::Env> env_;
  std::unique_ptr<rocksdb::DB> db_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_DATABASE_H_
