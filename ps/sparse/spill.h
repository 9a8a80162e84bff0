// The rows that a table has moved to its tier.

#ifndef PENSTOCK_PS_SPARSE_SPILL_H_
#define PENSTOCK_PS_SPARSE_SPILL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "ps/sparse/row_store.h"
#include "ps/sparse/tier.h"
#include "transport/base/mutex.h"

namespace penstock::ps::sparse {

// A buffer for one row outside a RowStore.
class RowBuffer {
 public:
  explicit RowBuffer(size_t bytes) : words_((bytes + 7) / 8) {}
  Row* row() { return reinterpret_cast<Row*>(words_.data()); }
  size_t bytes() const { return words_.size() * sizeof(uint64_t); }

 private:
  std::vector<uint64_t> words_;
};

// The interface of the shards of one table to its Tier. A row is either in
// memory or in the tier. After the first unrecoverable error, this object has
// no rows and accepts none. Thread-safe, as Tier is.
class Spill {
 public:
  // Makes an interface to `tier` for rows of `row_bytes`, which is RowStore's
  // stride. The tier must outlive this object.
  Spill(std::string table, Tier* tier, size_t row_bytes)
      : table_(std::move(table)), tier_(tier), row_bytes_(row_bytes) {}

  // Stores the row. Returns false, and changes nothing, if the tier has no
  // room.
  bool Put(uint32_t shard, const Row& row);
  // Copies a row to `*row`. The links to its neighbours are then invalid.
  // Returns false if the tier does not have the row or cannot read it.
  bool Get(uint32_t shard, uint64_t id, Row* row);
  void Erase(uint32_t shard, uint64_t id);

  // An iterator over all rows at one point in time, for a snapshot or a sweep.
  class Walk {
   public:
    // Returns the next row, valid until the next call. Returns null at the end,
    // or if the tier failed.
    const Row* Next();

   private:
    friend class Spill;
    Walk(Spill* spill, std::unique_ptr<Tier::Walk> rows)
        : spill_(spill), rows_(std::move(rows)), row_(spill->row_bytes_) {}

    Spill* const spill_;
    const std::unique_ptr<Tier::Walk> rows_;
    RowBuffer row_;
  };
  // Begins a walk. Returns null if the tier failed.
  std::unique_ptr<Walk> Begin();

  // Reserves room for `rows` future Put() calls, over all shards of the table.
  // Returns false if the tier has less room.
  bool Promise(size_t rows);
  // Returns the promised room of `rows` rows: they were put, or will not be
  // put.
  void Unpromise(size_t rows) { promised_ -= rows; }
  // Returns true if Put() can immediately use the room of an erased row; see
  // Tier.
  bool ErasedIsRoom() const { return !failed_ && tier_->ErasedIsRoom(); }

  size_t row_bytes() const { return row_bytes_; }
  // Returns OK, or DATA_LOSS with the first failure and the remedy, because a
  // failure loses rows.
  absl::Status status() const;
  // Returns the reason why the last failed Put() failed, for messages.
  absl::Status no_room() const;

 private:
  void Fail(const char* what, const absl::Status& why);

  const std::string table_;
  Tier* const tier_;
  const size_t row_bytes_;
  mutable base::Mutex mu_;
  std::atomic<bool> failed_{false};
  std::atomic<uint64_t> promised_{0};  // rows
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  absl::Status no_room_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SPILL_H_
