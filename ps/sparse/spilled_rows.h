// The rows of one shard in the tier.

#ifndef PENSTOCK_PS_SPARSE_SPILLED_ROWS_H_
#define PENSTOCK_PS_SPARSE_SPILLED_ROWS_H_

#include <cstddef>
#include <cstdint>

#include "ps/sparse/row_store.h"
#include "ps/sparse/spill.h"

namespace penstock::ps::sparse {

// A shard's rows in the tier, their number, and the room that the tier promised
// for further rows. Without a tier there are no rows and no room. Not
// thread-safe.
class SpilledRows {
 public:
  // Makes the set of a shard's rows. `spill` outlives this object; null means
  // no tier. `shard` is the shard's number in the tier.
  SpilledRows(Spill* spill, uint32_t shard)
      : spill_(spill),
        shard_(shard),
        found_(spill == nullptr ? 0 : spill->row_bytes()) {}

  bool has_tier() const { return spill_ != nullptr; }
  size_t size() const { return size_; }
  size_t buffer_bytes() const { return found_.bytes(); }

  // Loads the row of an id into found(). Returns false if the tier has no such
  // row.
  bool Find(uint64_t id) {
    return size_ > 0 && spill_->Get(shard_, id, found_.row());
  }
  const Row& found() { return *found_.row(); }
  // Moves a row to the tier. Returns false, and changes nothing, if the tier
  // has no room.
  bool Put(const Row& row) {
    const bool has_room = spill_->Put(shard_, row);
    size_ += has_room ? 1 : 0;
    return has_room;
  }
  // Erases a row that Find() found.
  void Erase(uint64_t id) {
    spill_->Erase(shard_, id);
    --size_;
  }
  // Returns true if Put() can immediately use the room of an erased row.
  bool ErasedIsRoom() const { return spill_->ErasedIsRoom(); }

  // Promises room in the tier for `rows` more rows. Returns false if the tier
  // has too little.
  bool Promise(size_t rows) {
    if (rows <= promised_) return true;
    if (!spill_->Promise(rows - promised_)) return false;
    promised_ = rows;
    return true;
  }
  // Reduces the promise to at most `rows` rows.
  void LimitPromise(size_t rows) {
    if (promised_ <= rows) return;
    spill_->Unpromise(promised_ - rows);
    promised_ = rows;
  }

 private:
  Spill* const spill_;
  const uint32_t shard_;
  size_t size_ = 0;
  size_t promised_ = 0;
  RowBuffer found_;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SPILLED_ROWS_H_
