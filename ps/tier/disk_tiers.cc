#include "ps/tier/disk_tiers.h"

#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/sst_file_manager.h>
#include <rocksdb/table.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <limits>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/tier/erased_rows.h"
#include "ps/tier/row_key.h"
#include "ps/tier/scratch_folder.h"

namespace penstock::ps {
namespace {

constexpr int kBloomBits = 10;
constexpr int kMaxOpenFiles = 512;
constexpr size_t kBuffers = 4;
constexpr size_t kSmallestMemory = size_t{1} << 20;
// RocksDB writes files of up to that size, also to forget rows.
constexpr uint64_t kSpareDiskBytes = uint64_t{64} << 20;

absl::Status StatusOf(const rocksdb::Status& status) {
  if (status.ok()) return absl::OkStatus();
  if (status.IsNoSpace() || status.subcode() == rocksdb::Status::kSpaceLimit) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the disk is full (", status.ToString(), ")"));
  }
  return absl::InternalError(status.ToString());
}

rocksdb::Slice SliceOf(const RowKey& key) {
  return {key.bytes, sizeof key.bytes};
}

RowKey NameIn(const rocksdb::Slice& key) {
  RowKey name;
  std::memcpy(name.bytes, key.data(), sizeof name.bytes);
  return name;
}

absl::Status CopyRow(const rocksdb::Slice& row, char* bytes, size_t size) {
  if (row.size() != size) {
    return absl::InternalError(
        absl::StrCat("a row has ", row.size(), " bytes, and not ", size));
  }
  std::memcpy(bytes, row.data(), size);
  return absl::OkStatus();
}

// There is no log, and nobody waits until a row is on the disk: all of it ends
// with the process.
rocksdb::WriteOptions Unlogged() {
  rocksdb::WriteOptions options;
  options.disableWAL = true;
  return options;
}

class RocksWalk : public sparse::Tier::Walk {
 public:
  // Without rows that are `erased`.
  RocksWalk(rocksdb::DB* db, uint32_t table, ErasedRows::Set erased)
      : begin_(RowKey::FirstOf(table)),
        end_(RowKey::FirstOf(table + 1)),
        end_slice_(SliceOf(end_)),
        erased_(std::move(erased)) {
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = &end_slice_;
    options.fill_cache = false;
    // An iterator has the rows of when it was made.
    rows_.reset(db->NewIterator(options));
    rows_->Seek(SliceOf(begin_));
  }

  absl::StatusOr<bool> Next(char* bytes, size_t size) override {
    while (rows_->Valid() && erased_.contains(NameIn(rows_->key()))) {
      rows_->Next();
    }
    if (!rows_->Valid()) {
      absl::Status status = StatusOf(rows_->status());
      if (!status.ok()) return status;
      return false;
    }
    absl::Status status = CopyRow(rows_->value(), bytes, size);
    if (!status.ok()) return status;
    rows_->Next();
    return true;
  }

 private:
  const RowKey begin_;
  const RowKey end_;
  const rocksdb::Slice end_slice_;
  const ErasedRows::Set erased_;
  std::unique_ptr<rocksdb::Iterator> rows_;
};

class RocksTiers : public DiskTiers {
 public:
  static absl::StatusOr<std::unique_ptr<DiskTiers>> Open(
      const DiskOptions& options);
  ~RocksTiers() override;

  std::unique_ptr<sparse::Tier> NewTier() override;
  uint64_t bytes() const override { return bytes_; }

  rocksdb::DB* db() { return db_.get(); }
  // Counts a row more. Returns RESOURCE_EXHAUSTED, and has not, if that would
  // be above the limit.
  absl::Status TakeRoom(uint64_t bytes);
  void GiveRoom(uint64_t bytes) { bytes_ -= bytes; }
  // Of the limit, or of the disk, of which RocksDB takes twice as much.
  uint64_t BytesLeft() const;
  uint64_t DiskBytesLeft() const;
  bool has_limit() const { return options_.max_bytes > 0; }

 private:
  RocksTiers(const DiskOptions& options, std::unique_ptr<ScratchFolder> folder)
      : options_(options), folder_(std::move(folder)) {}
  rocksdb::Options OptionsOfDatabase();

  const DiskOptions options_;
  const std::unique_ptr<ScratchFolder> folder_;
  std::shared_ptr<rocksdb::SstFileManager> files_;
  std::unique_ptr<rocksdb::DB> db_;
  std::atomic<uint32_t> tables_{0};
  std::atomic<uint64_t> bytes_{0};
};

class RocksTier : public sparse::Tier {
 public:
  RocksTier(RocksTiers* tiers, uint32_t table) : tiers_(tiers), table_(table) {}
  ~RocksTier() override {
    const RowKey begin = RowKey::FirstOf(table_);
    const RowKey end = RowKey::FirstOf(table_ + 1);
    tiers_->GiveRoom(bytes_);
    // What cannot be removed goes with the folder.
    (void)db()->DeleteRange(Unlogged(), db()->DefaultColumnFamily(),
                            SliceOf(begin), SliceOf(end));
  }

  absl::Status Put(Key key, absl::string_view bytes) override {
    absl::Status status = tiers_->TakeRoom(bytes.size());
    if (!status.ok()) return status;
    const RowKey name = RowKey::Of(table_, key);
    status = WriteErased();  // it may be one of them
    if (status.ok()) {
      status = StatusOf(
          db()->Put(Unlogged(), SliceOf(name), {bytes.data(), bytes.size()}));
    }
    if (status.ok()) {
      row_bytes_ = bytes.size();
      bytes_ += bytes.size();
    } else {
      tiers_->GiveRoom(bytes.size());
    }
    return status;
  }

  absl::StatusOr<bool> Get(Key key, char* bytes, size_t size) override {
    const RowKey name = RowKey::Of(table_, key);
    if (erased_.Has(name)) return false;
    rocksdb::PinnableSlice row;
    const rocksdb::Status found =
        db()->Get(rocksdb::ReadOptions(), db()->DefaultColumnFamily(),
                  SliceOf(name), &row);
    if (found.IsNotFound()) return false;
    absl::Status status = StatusOf(found);
    if (status.ok()) status = CopyRow(row, bytes, size);
    if (!status.ok()) return status;
    return true;
  }

  // Between two removals a row is put once, as SingleDelete() asks.
  absl::Status Erase(Key key) override {
    const RowKey name = RowKey::Of(table_, key);
    absl::Status status =
        StatusOf(db()->SingleDelete(Unlogged(), SliceOf(name)));
    if (absl::IsResourceExhausted(status)) {
      erased_.Add(name);
    } else if (!status.ok()) {
      return status;
    }
    bytes_ -= row_bytes_;
    tiers_->GiveRoom(row_bytes_);
    return absl::OkStatus();
  }

  uint64_t BytesLeft() const override { return tiers_->BytesLeft(); }
  // On a full disk RocksDB needs room to forget a row.
  bool ErasedIsRoom() const override {
    return tiers_->has_limit() && tiers_->DiskBytesLeft() >= kSpareDiskBytes;
  }

  absl::StatusOr<std::unique_ptr<sparse::Tier::Walk>> Begin() override {
    std::unique_ptr<sparse::Tier::Walk> walk;
    erased_.Look([&](const ErasedRows::Set& erased) {
      walk = std::make_unique<RocksWalk>(db(), table_, erased);
    });
    return walk;
  }

 private:
  rocksdb::DB* db() const { return tiers_->db(); }
  absl::Status WriteErased() {
    return erased_.Write([this](const ErasedRows::Set& rows) {
      rocksdb::WriteBatch batch;
      for (const RowKey& row : rows) batch.SingleDelete(SliceOf(row));
      return StatusOf(db()->Write(Unlogged(), &batch));
    });
  }

  RocksTiers* const tiers_;
  const uint32_t table_;
  ErasedRows erased_;
  std::atomic<uint64_t> row_bytes_{0};
  std::atomic<uint64_t> bytes_{0};
};

rocksdb::Options RocksTiers::OptionsOfDatabase() {
  const size_t half = std::max(options_.memory_bytes, kSmallestMemory) / 2;
  rocksdb::BlockBasedTableOptions table;
  table.block_cache = rocksdb::NewLRUCache(half);
  table.cache_index_and_filter_blocks = true;
  table.pin_l0_filter_and_index_blocks_in_cache = true;
  table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(kBloomBits));
  // In pieces of some KiB. A file has one of each else, half a MiB together: if
  // the cache has no room for all of them, each look-up reads that.
  table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  table.partition_filters = true;

  rocksdb::Options options;
  options.create_if_missing = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  options.write_buffer_size = half / kBuffers;
  options.max_write_buffer_number = static_cast<int>(kBuffers);
  options.max_open_files = kMaxOpenFiles;
  options.max_background_jobs = 2;
  // Floats do not get smaller by it.
  options.compression = rocksdb::kNoCompression;
  options.avoid_flush_during_shutdown = true;
  options.keep_log_file_num = 1;
  options.max_log_file_size = size_t{1} << 20;
  files_.reset(rocksdb::NewSstFileManager(rocksdb::Env::Default()));
  options.sst_file_manager = files_;
  return options;
}

absl::StatusOr<std::unique_ptr<DiskTiers>> RocksTiers::Open(
    const DiskOptions& options) {
  auto folder = ScratchFolder::Make(options.folder);
  if (!folder.ok()) return folder.status();
  auto tiers =
      std::unique_ptr<RocksTiers>(new RocksTiers(options, *std::move(folder)));
  rocksdb::DB* db = nullptr;
  const std::string path = tiers->folder_->path() + "/db";
  const absl::Status status =
      StatusOf(rocksdb::DB::Open(tiers->OptionsOfDatabase(), path, &db));
  if (!status.ok()) {
    return absl::Status(status.code(), absl::StrCat("rows on disk: open ", path,
                                                    ": ", status.message()));
  }
  tiers->db_.reset(db);
  return std::unique_ptr<DiskTiers>(std::move(tiers));
}

// The folder goes last.
RocksTiers::~RocksTiers() { db_.reset(); }

std::unique_ptr<sparse::Tier> RocksTiers::NewTier() {
  return std::make_unique<RocksTier>(this, tables_++);
}

uint64_t RocksTiers::DiskBytesLeft() const {
  std::error_code error;
  const auto space = std::filesystem::space(options_.folder, error);
  return error ? std::numeric_limits<uint64_t>::max() : space.available / 2;
}

uint64_t RocksTiers::BytesLeft() const {
  const uint64_t disk = DiskBytesLeft();
  if (options_.max_bytes == 0) return disk;
  const uint64_t used = bytes_;
  return std::min(disk,
                  options_.max_bytes - std::min(used, options_.max_bytes));
}

absl::Status RocksTiers::TakeRoom(uint64_t bytes) {
  const uint64_t used = bytes_ += bytes;
  if (options_.max_bytes == 0 || used <= options_.max_bytes) {
    return absl::OkStatus();
  }
  bytes_ -= bytes;
  return absl::ResourceExhaustedError(
      absl::StrCat(used - bytes, " bytes of rows are there, and no more than ",
                   options_.max_bytes, " may be"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskTiers>> DiskTiers::Open(
    const DiskOptions& options) {
  return RocksTiers::Open(options);
}

}  // namespace penstock::ps
