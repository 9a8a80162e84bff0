// One shard of a sparse table: a subset of its ids, with their rows.

#ifndef PENSTOCK_PS_SPARSE_SHARD_H_
#define PENSTOCK_PS_SPARSE_SHARD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ps/sparse/admission.h"
#include "ps/sparse/copies.h"
#include "ps/sparse/hash.h"
#include "ps/sparse/index.h"
#include "ps/sparse/initial_value.h"
#include "ps/sparse/options.h"
#include "ps/sparse/recency.h"
#include "ps/sparse/removals.h"
#include "ps/sparse/restore_order.h"
#include "ps/sparse/row_block.h"
#include "ps/sparse/row_store.h"
#include "ps/sparse/spill.h"

namespace penstock::ps::sparse {

// Counters since the table was made. Rows and bytes are current values.
struct Counters {
  uint64_t rows = 0;
  uint64_t spilled_rows = 0;  // of `rows`, those in the tier
  uint64_t reserved = 0;      // rows that reservations hold
  uint64_t bytes = 0;         // as in budget_bytes; without copies
  uint64_t hits = 0;          // ids of pulls and pushes that had a row
  uint64_t misses = 0;        // ids of pulls and pushes without a row
  uint64_t created = 0;
  uint64_t not_admitted = 0;   // gradients that Admission rejected
  uint64_t refused = 0;        // whole pushes and reservations
  uint64_t dropped = 0;        // see Push()
  uint64_t expired = 0;        // evicted: time to live
  uint64_t over_capacity = 0;  // evicted: max_rows
  uint64_t over_budget = 0;    // evicted: budget_bytes, or no memory
  uint64_t removed = 0;        // by Remove()
  uint64_t spilled = 0;        // moved to the tier
  uint64_t fetched = 0;        // moved back from the tier

  void Add(const Counters& other);
};

// A shard. With a tier, the least recently used rows are there: SpillRow()
// moves a row out, Fetch() moves it back on demand.
//
// `tag` is the low half of the id's hash, `now` is in seconds. Not thread-safe.
class Shard {
 public:
  enum class Reason { kExpired, kCapacity, kBudget, kRemoved };

  // Makes an empty shard. All pointers must outlive the shard. Takes a share of
  // the table's limits in `options`. `spill` is null without a tier. The tier
  // knows the shard by `number`.
  Shard(const Options* options, const InitialValue* initial,
        const HashKey* hash, Spill* spill, uint32_t number);

  ~Shard();

  static constexpr size_t kMaxPrefetch = 128;
  // Prefetches what the calls for these hashes will touch. Limited to
  // kMaxPrefetch hashes.
  void Prefetch(const uint64_t* hashes, size_t count) const;

  // Returns the row and marks it as used. Returns null if there is none or it
  // has expired. Does not search the tier.
  const Row* Read(uint64_t id, uint32_t tag, uint32_t now);
  // Reads a row like Read(), but also fetches the row from the tier. The result
  // is valid until the next call.
  const Row* ReadOrFetch(uint64_t id, uint32_t tag, uint32_t now);
  // Reads a row like ReadOrFetch(), but makes the row if there is room.
  const Row* ReadOrMake(uint64_t id, uint32_t tag, uint32_t now);

  // Returns the row for a change. Finds the row, or makes it if the id is
  // admitted. A new row uses up one of `*reserved`. If none is left, the row
  // needs room beyond all reserved rows. Returns null if the id is not
  // admitted. Returns null and sets `*dropped` if there is no room.
  Row* Update(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
              bool* dropped);
  // Puts a row of a restore. Returns the row, of which the caller sets elements
  // and updates. If there is no room, drops the row that was not used for
  // longest, which may be this one; then returns null. With a tier, needs one
  // of
  // `*reserved` instead, and returns null only if memory fails.
  Row* Put(uint64_t id, uint32_t tag, uint32_t last_use, size_t* reserved);
  // Sorts rows by their last use. Returns the ids of the restore that have no
  // row. Call after the last Put().
  RestoreLoss FinishRestore();

  // Reserves room for `rows` that Update() may have to make. Returns false, and
  // reserves nothing, if there is no room and no row may be evicted or moved to
  // the tier.
  bool Reserve(size_t rows);
  void Unreserve(size_t rows);
  // Return true if Update() or Put() would make a row. UpdateWouldMake() may
  // also return true for an id that is neither in the tier nor admitted.
  bool UpdateWouldMake(uint64_t id, uint32_t tag, uint32_t now) const;
  bool PutWouldMake(uint64_t id, uint32_t tag) const {
    return NumberOf(id, tag) == kNoRow;
  }
  // Returns true if Update() needs new room while the tier is full and its rows
  // can only be swapped with rows in memory. Asks the tier for the id.
  bool UpdateNeedsRoom(uint64_t id, uint32_t tag, uint32_t now);
  // Returns true if rows can be swapped with the tier.
  bool CanSwap() const;
  // Removes an id's row from the tier if it has expired.
  void ExpireSpilled(uint64_t id, uint32_t tag, uint32_t now);

  bool Remove(uint64_t id, uint32_t tag);
  // Removes expired rows, and moves rows out of almost empty slabs, at most
  // `limit` of each. Returns true if there is more to do.
  bool Maintain(uint32_t now, size_t limit);

  // Assigns later changes to epoch plan->at + 1. With `walk`, the snapshot
  // takes this shard's rows; the plan must live until EndSnapshot().
  void BeginSnapshot(SnapshotPlan* plan);
  // Adds the removed ids first, then up to `limit` rows. Returns true if there
  // are more.
  bool ReadSnapshot(size_t limit, RowBlock* block);
  void EndSnapshot();
  // Adds a row to a snapshot's block.
  static void Append(const Options& options, const Row& row, RowBlock* block);
  bool KnowsRemovalsAfter(uint32_t epoch) const {
    return removals_.CompleteAfter(epoch);
  }
  void ForgetRemovals(uint32_t epoch) { removals_.Forget(epoch); }

  Counters counters() const;
  size_t LongestRun() const { return index_.LongestRun(); }

 private:
  size_t bytes() const;
  bool Expired(const Row& row, uint32_t now) const {
    return now > row.last_use && now - row.last_use > time_to_live_;
  }
  uint32_t NumberOf(uint64_t id, uint32_t tag) const {
    return index_.Find(tag,
                       [&](uint32_t row) { return rows_.At(row)->id == id; });
  }
  // Returns how many rows fit before each new one evicts another.
  size_t below_max() const {
    return max_rows_ - std::min(rows_.size(), max_rows_);
  }
  uint32_t FindAlive(uint64_t id, uint32_t tag, uint32_t now);
  // Returns the current limit of the bytes of rows and index.
  size_t ByteLimit();
  // Updates the pool's count of this shard's bytes.
  void CountBytes();
  bool Admit(uint64_t id, uint32_t tag);
  void AddRemoval(uint64_t id);
  bool HasRoomFor(size_t rows, size_t byte_limit);
  bool GrowFor(size_t rows, size_t byte_limit);
  bool HasRoomForOne(bool is_reserved, bool must);
  // Returns a row in which only the id is set, or kNoRow if there is no room.
  // `must` tells that the row was promised before. The shard may then exceed
  // its budget if the tier is full.
  uint32_t NewRow(uint64_t id, uint32_t tag, size_t* reserved, bool must);
  uint32_t TakeRow(uint64_t id, uint32_t tag);
  uint32_t NewRestored(uint64_t id, uint32_t tag, uint32_t last_use);
  void Sort();
  uint32_t Make(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
                bool must);
  void Evict(uint32_t number, Reason reason);
  bool EvictOldest(Reason reason);
  void Release(uint32_t number);

  bool may_evict() const {
    return options_.above_budget != AboveBudget::kRefuse;
  }
  // Loads the id's row from the tier into fetched_. Returns false if there is
  // none or it has expired.
  bool FindSpilled(uint64_t id, uint32_t now);
  // Erases the row that FindSpilled() found.
  void EraseSpilled(uint64_t id);
  // Moves the row that FindSpilled() found into memory. Returns kNoRow if there
  // is no room.
  uint32_t Fetch(uint32_t tag, size_t* reserved, bool must);
  // Fetches a row like Fetch(), for a full tier: another row takes the fetched
  // row's room there. If that fails, exceeds the budget, as NewRow() does.
  uint32_t Swap(uint32_t tag);
  // Copies fetched_ into row `number`, which was made for it.
  void TakeFetched(uint32_t number);
  bool SpillRow(uint32_t number);
  // Reserves room in the tier for the rows that do not fit into memory, out of
  // the reserved rows and `rows` more. Returns false if the tier has too little
  // room.
  bool PromiseRoom(size_t rows);

  // Copies a row that the snapshot would otherwise miss.
  void CopyForSnapshot(uint32_t number, const Row& row) {
    if (plan_ != nullptr && number >= cursor_ && plan_->Has(row)) {
      copies_.Add(row, plan_);
    }
  }
  // Keeps the row's old contents for the snapshot. Call before each change of a
  // row.
  void Preserve(uint32_t number, Row* row) {
    if (row->changed == epoch_) return;
    CopyForSnapshot(number, *row);
    row->changed = epoch_;
  }
  void Use(uint32_t number, Row* row, uint32_t now) {
    // Most uses happen in the second that is stored already. Not writing then
    // keeps the line clean.
    if (row->last_use < now) row->last_use = now;
    if (keeps_order_) recency_.Use(number);
  }
  void Move(uint32_t number);
  bool Compact(size_t limit);

  const Options& options_;
  const InitialValue& initial_;
  const HashKey& hash_;
  const bool keeps_order_;
  const uint32_t time_to_live_;
  const size_t max_rows_;
  const size_t byte_limit_;  // of rows and index
  Pool* const pool_;         // null: no pool
  size_t counted_ = 0;       // in the pool
  RowIndex index_;
  RowStore rows_;
  Recency recency_;
  Admission admission_;
  Removals removals_;
  uint32_t drain_from_ = 0;
  // Set during a restore that has no room for all rows.
  std::unique_ptr<RestoreOrder> restore_order_;

  uint32_t epoch_ = 1;
  SnapshotPlan* plan_ = nullptr;
  uint32_t cursor_ = kNoRow;  // rows before it have been taken
  bool removed_taken_ = false;
  Copies copies_;
  Counters counters_;

  Spill* const spill_;
  const uint32_t number_;
  size_t spilled_rows_ = 0;
  size_t promised_ = 0;  // rows promised by spill_
  // True if the last row to be moved to the tier had no room.
  bool tier_is_full_ = false;
  RowBuffer fetched_;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SHARD_H_
