#include "ps/tier/disk_tiers.h"

#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/write_batch.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/tier/database.h"
#include "ps/tier/erased_rows.h"
#include "ps/tier/row_key.h"

namespace penstock::ps {
namespace {

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

class RocksWalk : public sparse::Tier::Walk {
 public:
  // Makes a walk that skips the `erased` rows.
  RocksWalk(rocksdb::DB* db, uint32_t table, ErasedRows::Set erased)
      : begin_(RowKey::FirstOf(table)),
        end_(RowKey::FirstOf(table + 1)),
        end_slice_(SliceOf(end_)),
        erased_(std::move(erased)) {
    rocksdb::ReadOptions options;
    options.iterate_upper_bound = &end_slice_;
    options.fill_cache = false;
    // Makes an iterator, which reads the rows as they were when it was created.
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
      const DiskOptions& options, DiskCalls* calls);

  std::unique_ptr<sparse::Tier> NewTier() override;
  uint64_t bytes() const override { return bytes_; }

  Database* database() { return database_.get(); }
  // Adds `bytes`, the bytes of a row, to the count. Returns RESOURCE_EXHAUSTED,
  // without counting, if the row would exceed the limit.
  absl::Status TakeRoom(uint64_t bytes);
  void GiveRoom(uint64_t bytes) { bytes_ -= bytes; }
  // Returns the bytes left below the limit and on the disk.
  uint64_t BytesLeft() const;
  bool has_limit() const { return max_bytes_ > 0; }

 private:
  RocksTiers(uint64_t max_bytes, std::unique_ptr<Database> database)
      : max_bytes_(max_bytes), database_(std::move(database)) {}

  const uint64_t max_bytes_;
  const std::unique_ptr<Database> database_;
  std::atomic<uint32_t> tables_{0};
  std::atomic<uint64_t> bytes_{0};
};

class RocksTier : public sparse::Tier {
 public:
  RocksTier(RocksTiers* tiers, uint32_t table)
      : tiers_(tiers), database_(tiers->database()), table_(table) {}
  ~RocksTier() override {
    const RowKey begin = RowKey::FirstOf(table_);
    const RowKey end = RowKey::FirstOf(table_ + 1);
    tiers_->GiveRoom(bytes_);
    rocksdb::WriteBatch batch;
    batch.DeleteRange(SliceOf(begin), SliceOf(end));
    // Ignore errors, because remaining rows are removed with the folder.
    (void)database_->Write(&batch);
  }

  absl::Status Put(Key key, absl::string_view bytes) override {
    absl::Status status = tiers_->TakeRoom(bytes.size());
    if (!status.ok()) return status;
    const RowKey name = RowKey::Of(table_, key);
    status = WriteErased();  // may include this row
    if (status.ok()) {
      rocksdb::WriteBatch batch;
      batch.Put(SliceOf(name), {bytes.data(), bytes.size()});
      status = database_->Write(&batch);
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

  // Erases a row. A row is put only once between two removals, as
  // SingleDelete() requires.
  absl::Status Erase(Key key) override {
    const RowKey name = RowKey::Of(table_, key);
    rocksdb::WriteBatch batch;
    batch.SingleDelete(SliceOf(name));
    absl::Status status = database_->Write(&batch);
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
  // Returns true if there is a limit and the disk has room. RocksDB needs room
  // to delete a row.
  bool ErasedIsRoom() const override {
    return tiers_->has_limit() && database_->BytesLeft() > 0;
  }

  absl::StatusOr<std::unique_ptr<sparse::Tier::Walk>> Begin() override {
    std::unique_ptr<sparse::Tier::Walk> walk;
    erased_.Look([&](const ErasedRows::Set& erased) {
      walk = std::make_unique<RocksWalk>(db(), table_, erased);
    });
    return walk;
  }

 private:
  rocksdb::DB* db() const { return database_->db(); }
  absl::Status WriteErased() {
    return erased_.Write([this](const ErasedRows::Set& rows) {
      rocksdb::WriteBatch batch;
      for (const RowKey& row : rows) batch.SingleDelete(SliceOf(row));
      return database_->Write(&batch);
    });
  }

  RocksTiers* const tiers_;
  Database* const database_;
  const uint32_t table_;
  ErasedRows erased_;
  std::atomic<uint64_t> row_bytes_{0};
  std::atomic<uint64_t> bytes_{0};
};

absl::StatusOr<std::unique_ptr<DiskTiers>> RocksTiers::Open(
    const DiskOptions& options, DiskCalls* calls) {
  auto database = Database::Open(
      {options.folder, options.memory_bytes, options.longest_stall}, calls);
  if (!database.ok()) return database.status();
  return std::unique_ptr<DiskTiers>(
      new RocksTiers(options.max_bytes, *std::move(database)));
}

std::unique_ptr<sparse::Tier> RocksTiers::NewTier() {
  return std::make_unique<RocksTier>(this, tables_++);
}

uint64_t RocksTiers::BytesLeft() const {
  const uint64_t disk = database_->BytesLeft();
  if (max_bytes_ == 0) return disk;
  const uint64_t used = bytes_;
  return std::min(disk, max_bytes_ - std::min(used, max_bytes_));
}

absl::Status RocksTiers::TakeRoom(uint64_t bytes) {
  const uint64_t used = bytes_ += bytes;
  if (max_bytes_ == 0 || used <= max_bytes_) {
    return absl::OkStatus();
  }
  bytes_ -= bytes;
  return absl::ResourceExhaustedError(
      absl::StrCat(used - bytes, " bytes of rows are stored, and no more than ",
                   max_bytes_, " may be"));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DiskTiers>> DiskTiers::Open(
    const DiskOptions& options, DiskCalls* calls) {
  return RocksTiers::Open(options, calls);
}

}  // namespace penstock::ps
