#include "ps/tier/database.h"

#include <rocksdb/cache.h>
#include <rocksdb/convenience.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {
namespace {

constexpr int kBloomBits = 10;
constexpr int kMaxOpenFiles = 512;
// The number of memory buffers for rows. One buffer receives rows while the
// others are written.
constexpr int kBuffers = 4;
constexpr size_t kSmallestMemory = size_t{1} << 20;
// Limits the number of tables in RocksDB's level 0. The value is RocksDB's
// default.
constexpr int kMostYoungTables = 36;

// The size in bytes of the files that RocksDB compacts. This much space is
// reserved for compaction, or an eighth of a small disk.
constexpr uint64_t kSpareBytes = uint64_t{64} << 20;
constexpr uint64_t kSpareShare = 8;

constexpr absl::Duration kStallPoll = absl::Milliseconds(1);

// A logger that drops all lines. RocksDB's own logger ignores a failed write
// and continues to write. With assertions, as in Debian's build, RocksDB then
// aborts, so that a full disk ended servers. No one reads the log, which is
// removed with the process.
class NoLog : public rocksdb::Logger {
 public:
  using rocksdb::Logger::Logv;
  void Logv(const char* /*format*/, va_list /*arguments*/) override {}
};

// Gives each database its own threads. RocksDB shares one thread pool in a
// process, and a full disk may block one flush and one compaction thread of a
// database.
class ThreadsForEach {
 public:
  static void Add(rocksdb::Env* env) {
    const int count = ++databases_;
    env->IncBackgroundThreadsIfNeeded(count, rocksdb::Env::HIGH);
    env->IncBackgroundThreadsIfNeeded(count, rocksdb::Env::LOW);
  }
  static void Remove() { --databases_; }

 private:
  static std::atomic<int> databases_;
};

std::atomic<int> ThreadsForEach::databases_{0};

// Returns options for writes without the write-ahead log, because no row
// outlives the process. RocksDB returns an error instead of waiting, because it
// might wait for the disk.
rocksdb::WriteOptions Unlogged() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  options.no_slowdown = true;
  return options;
}

}  // namespace

absl::Status StatusOf(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsNoSpace()) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the disk is full (", status.ToString(), ")"));
  }
  return absl::InternalError(status.ToString());
}

Database::Database(const Options& options,
                   std::unique_ptr<ScratchFolder> folder, DiskCalls* calls)
    : options_(options),
      calls_(calls),
      folder_(std::move(folder)),
      shortage_([this] { return calls_->SpaceAt(folder_->path()).free; }),
      files_(std::make_shared<TierFileSystem>(calls, &shortage_)),
      env_(rocksdb::NewCompositeEnv(files_)) {
  ThreadsForEach::Add(env_.get());
}

// Returns RocksDB's options. Writes stop without slowing down first, because
// Write() polls, and each poll would slow them further.
rocksdb::Options Database::RocksOptions() const {
  const size_t half = std::max(options_.memory_bytes, kSmallestMemory) / 2;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(half);
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBits));
  // Partitions index and filters into pieces of some KiB. Otherwise each file
  // has one index and one filter, half a MiB together, and each look-up reads
  // both if the cache has no room for them.
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;

  rocksdb::Options options;
  options.env = env_.get();
  options.listeners = {files_->listener()};
  options.info_log = std::make_shared<NoLog>();
  options.create_if_missing = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = half / kBuffers;
  options.max_write_buffer_number = kBuffers - 1;
  options.level0_slowdown_writes_trigger = kMostYoungTables;
  options.level0_stop_writes_trigger = kMostYoungTables;
  options.soft_pending_compaction_bytes_limit =
      options.hard_pending_compaction_bytes_limit;
  options.max_open_files = kMaxOpenFiles;
  options.max_background_jobs = 2;  // a flush and a compaction
  // Never replaces the manifest, because nothing reads it, and a full disk may
  // have no room for a new one.
  options.max_manifest_file_size = std::numeric_limits<uint64_t>::max();
  // Do not compress, because floats do not compress well.
  options.compression = rocksdb::kNoCompression;
  options.avoid_flush_during_shutdown = true;
  return options;
}

absl::StatusOr<std::unique_ptr<Database>> Database::Open(const Options& options,
                                                         DiskCalls* calls) {
  auto folder = ScratchFolder::Make(options.folder);
  if (!folder.ok()) return folder.status();
  auto database = std::unique_ptr<Database>(
      new Database(options, *std::move(folder), calls));
  rocksdb::DB* db = nullptr;
  const std::string path = database->folder_->path() + "/db";
  const absl::Status status =
      StatusOf(rocksdb::DB::Open(database->RocksOptions(), path, &db));
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("rows on disk: open ", path,
                                                    ": ", status.message()));
  }
  database->db_.reset(db);
  database->files_->OnOpened();
  return database;
}

// Closes the database. A running compaction stops at its next row, a flush at
// its next write. The folder is removed last.
Database::~Database() {
  if (db_ != nullptr) {
    rocksdb::CancelAllBackgroundWork(db_.get(), /*wait=*/false);
  }
  shortage_.Close();
  db_.reset();
  ThreadsForEach::Remove();
}

absl::Status Database::Write(rocksdb::WriteBatch* batch) {
  absl::Time end = absl::InfiniteFuture();
  for (;;) {
    absl::Status disk = shortage_.status();
    if (!disk.ok()) return disk;
    const rocksdb::Status written = db_->Write(Unlogged(), batch);
    if (!written.IsIncomplete()) return StatusOf(written);
    const absl::Time now = base::SteadyNow();
    if (end == absl::InfiniteFuture()) end = now + options_.longest_stall;
    if (now > end) {
      // Records the failure, so that later writes need not wait as long for
      // this disk.
      shortage_.OnFailed(Shortage::Kind::kFlush, ETIME, 0);
      return absl::ResourceExhaustedError(
          absl::StrCat("the disk has taken no rows for ",
                       absl::FormatDuration(options_.longest_stall)));
    }
    absl::SleepFor(kStallPoll);
  }
}

uint64_t Database::Unwritten() const {
  uint64_t bytes = 0;
  db_->GetIntProperty(rocksdb::DB::Properties::kCurSizeAllMemTables, &bytes);
  return bytes;
}

uint64_t Database::BytesLeft() const {
  if (!shortage_.status().ok()) return 0;
  const DiskCalls::Space space = calls_->SpaceAt(folder_->path());
  const uint64_t kept =
      std::min(kSpareBytes, space.all / kSpareShare) + Unwritten();
  return (space.free - std::min(space.free, kept)) / 2;
}

}  // namespace penstock::ps
