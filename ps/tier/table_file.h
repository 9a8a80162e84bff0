// A table of rows, as RocksDB writes it to the disk.

#ifndef PENSTOCK_PS_TIER_TABLE_FILE_H_
#define PENSTOCK_PS_TIER_TABLE_FILE_H_

#include <rocksdb/file_system.h>
#include <rocksdb/io_status.h>
#include <rocksdb/slice.h>

#include <cstdint>
#include <string>

#include "absl/functional/function_ref.h"
#include "ps/tier/disk_calls.h"
#include "ps/tier/shortage.h"
#include "transport/base/unique_fd.h"

namespace penstock::ps {

// RocksDB answers a write that fails by stopping all writes: for a full disk
// until its own look at the room, and for good after EIO or EDQUOT. A later
// write to the same file aborts, where RocksDB has assertions as in Debian's
// build. Hence no write of this file fails. A flush waits for room. A
// compaction that has none is told so by Sync(), after which nothing is
// written: RocksDB removes the file and compacts again later. See Shortage.
//
// For one thread.
class TableFile : public rocksdb::FSWritableFile {
 public:
  // Both outlive the file. Blocks as a write does.
  TableFile(std::string path, Shortage::Kind kind, DiskCalls* calls,
            Shortage* shortage);
  ~TableFile() override = default;

  using rocksdb::FSWritableFile::Append;
  rocksdb::IOStatus Append(const rocksdb::Slice& data,
                           const rocksdb::IOOptions& options,
                           rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Append(const rocksdb::Slice& data,
                           const rocksdb::IOOptions& options,
                           const rocksdb::DataVerificationInfo& verification,
                           rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Flush(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Sync(const rocksdb::IOOptions& options,
                         rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus Close(const rocksdb::IOOptions& options,
                          rocksdb::IODebugContext* debug) override;
  uint64_t GetFileSize(const rocksdb::IOOptions& options,
                       rocksdb::IODebugContext* debug) override;

 private:
  // Repeats `call`, which returns 0 or an errno, for as long as it fails and
  // the file may wait. Gives the file up if it may not.
  void Try(absl::FunctionRef<int()> call);
  void GiveUp(int error);
  // Writes some of `*data`, and removes that from it. Returns 0 or an errno.
  int WriteSome(rocksdb::Slice* data);
  rocksdb::IOStatus status() const;

  const std::string path_;
  const Shortage::Kind kind_;
  DiskCalls* const calls_;
  Shortage* const shortage_;
  base::UniqueFd fd_;
  uint64_t size_ = 0;  // as RocksDB knows it
  int error_ = 0;      // why the file was given up
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_TABLE_FILE_H_
