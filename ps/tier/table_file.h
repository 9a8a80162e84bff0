// A table file that RocksDB writes to the disk.

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

// A file whose writes do not fail. After a failed write, RocksDB stops all
// writes: on a full disk until it sees free space, after EIO or EDQUOT for
// ever. A later write to the same file aborts if RocksDB has assertions, as in
// Debian's build. Therefore a flush waits for room. A compaction without room
// drops its data, and Sync() reports the failure. RocksDB then removes the file
// and compacts again later. See Shortage.
//
// One thread at a time may use a file.
class TableFile : public rocksdb::FSWritableFile {
 public:
  // Creates the file at `path`. `calls` and `shortage` must outlive the file.
  // Blocks as a write does.
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
  // Calls `call`, which returns 0 or an errno. Retries after a failure while
  // the file may wait. After that, abandons the file.
  void Try(absl::FunctionRef<int()> call);
  void GiveUp(int error);
  // Writes a part of `*data` and removes the written part from `*data`. Returns
  // 0 or an errno.
  int WriteSome(rocksdb::Slice* data);
  rocksdb::IOStatus status() const;

  const std::string path_;
  const Shortage::Kind kind_;
  DiskCalls* const calls_;
  Shortage* const shortage_;
  base::UniqueFd fd_;
  uint64_t size_ = 0;  // as RocksDB sees it
  int error_ = 0;      // why the file was abandoned
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_TABLE_FILE_H_
