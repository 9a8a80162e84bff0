// A RocksDB database in a folder that is removed when the process ends.

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

// A database on a disk that may become full or fail. Meanwhile refuses writes,
// and retains stored rows. Accepts writes again when the disk does.
// Thread-safe.
class Database {
 public:
  struct Options {
    // The parent folder, in which the database creates its own folder.
    std::string folder;
    // Limits the memory in bytes. Half is for rows that are not written yet,
    // half for the block cache.
    size_t memory_bytes = 0;
    // Limits how long a write waits for memory. Memory becomes free when
    // earlier rows are on disk.
    absl::Duration longest_stall;
  };

  // Opens the database. Errors name the folder. `calls` must outlive the
  // database.
  static absl::StatusOr<std::unique_ptr<Database>> Open(const Options& options,
                                                        DiskCalls* calls);
  // Closes the database. Does not wait for room on the disk.
  ~Database();

  // Returns the database, for reads.
  rocksdb::DB* db() const { return db_.get(); }

  // Applies `batch`. Blocks while the memory for rows is full and the disk
  // accepts writes. Returns RESOURCE_EXHAUSTED, and changes nothing, if the
  // disk accepts no writes, or after the longest stall.
  absl::Status Write(rocksdb::WriteBatch* batch);

  // Returns how many bytes of rows fit on the disk: half of the free space,
  // minus a reserve. RocksDB needs the other half to rewrite the rows. Returns
  // 0 while the disk accepts no writes.
  uint64_t BytesLeft() const;

 private:
  Database(const Options& options, std::unique_ptr<ScratchFolder> folder,
           DiskCalls* calls);
  rocksdb::Options RocksOptions() const;
  // Returns the bytes of rows in memory that are not written yet.
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
