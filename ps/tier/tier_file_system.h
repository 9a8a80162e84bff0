// The file system under RocksDB. No file outlives the process.

#ifndef PENSTOCK_PS_TIER_TIER_FILE_SYSTEM_H_
#define PENSTOCK_PS_TIER_TIER_FILE_SYSTEM_H_

#include <rocksdb/file_system.h>
#include <rocksdb/io_status.h>
#include <rocksdb/listener.h>

#include <atomic>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "ps/tier/disk_calls.h"
#include "ps/tier/shortage.h"
#include "transport/base/mutex.h"

namespace penstock::ps {

// A file system on which writes do not fail while the database is open, so that
// RocksDB never enters its error states:
// - Tables are TableFiles.
// - All other files (MANIFEST, CURRENT, logs) are only for a later process, and
//   no later process reads them. Data that cannot be stored in them is dropped,
//   and directories are not synced.
// - A failed read is reported as retryable, so that RocksDB compacts again.
//
// Failures are reported while the database is being opened.
class TierFileSystem : public rocksdb::FileSystemWrapper {
 public:
  // Makes a file system. `kernel` handles all files except tables. `calls` and
  // `shortage` must outlive this object.
  TierFileSystem(DiskCalls* calls, Shortage* shortage,
                 const std::shared_ptr<rocksdb::FileSystem>& kernel =
                     rocksdb::FileSystem::Default());
  ~TierFileSystem() override;

  // Returns a listener for the database, which tells this object which tables
  // belong to compactions. The listener uses the shortage.
  std::shared_ptr<rocksdb::EventListener> listener() const;

  // Records that the database is open. From now on, failures are hidden as the
  // class comment describes.
  void OnOpened() { is_opened_ = true; }

  const char* Name() const override { return "PenstockTier"; }
  rocksdb::IOStatus NewWritableFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSWritableFile>* file,
      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewRandomAccessFile(
      const std::string& path, const rocksdb::FileOptions& options,
      std::unique_ptr<rocksdb::FSRandomAccessFile>* file,
      rocksdb::IODebugContext* debug) override;
  rocksdb::IOStatus NewDirectory(const std::string& path,
                                 const rocksdb::IOOptions& options,
                                 std::unique_ptr<rocksdb::FSDirectory>* folder,
                                 rocksdb::IODebugContext* debug) override;

 private:
  class Listener;

  DiskCalls* const calls_;
  Shortage* const shortage_;
  const std::shared_ptr<Listener> listener_;
  std::atomic<bool> is_opened_{false};
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_TIER_FILE_SYSTEM_H_
