// One shard of a sparse table: a subset of its ids, with their rows.

#ifndef PENSTOCK_PS_SPARSE_SHARD_H_
#define PENSTOCK_PS_SPARSE_SHARD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "ps/sparse/admission.h"
#include "ps/sparse/hash.h"
#include "ps/sparse/initial_value.h"
#include "ps/sparse/options.h"
#include "ps/sparse/removals.h"
#include "ps/sparse/restore_order.h"
#include "ps/sparse/row_store.h"
#include "ps/sparse/shard_memory.h"
#include "ps/sparse/shard_rows.h"
#include "ps/sparse/shard_snapshot.h"
#include "ps/sparse/spill.h"
#include "ps/sparse/spilled_rows.h"

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

// A shard: decides which ids have rows, and whether a row is in memory or in
// the tier. If there is a tier, it stores the least recently used rows:
// SpillRow() moves a row to the tier, and Fetch() moves it back on demand.
//
// `tag` is the low half of the id's hash. `now` is in seconds. Not thread-safe.
class Shard {
 public:
  enum class Reason { kExpired, kCapacity, kBudget, kRemoved };

  // Makes an empty shard. All pointers must outlive the shard. The shard has a
  // share of the table's limits in `options`. `spill` is null without a tier.
  // `number` identifies the shard in the tier.
  Shard(const Options* options, const InitialValue* initial,
        const HashKey* hash, Spill* spill, uint32_t number);

  const ShardRows& rows() const { return rows_; }
  ShardSnapshot& snapshot() { return snapshot_; }
  Removals& removals() { return removals_; }

  // Returns the row and marks it as used. Returns null if there is none or it
  // has expired. Does not search the tier.
  const Row* Read(uint64_t id, uint32_t tag, uint32_t now);
  // Like Read(), but also fetches the row from the tier. The result is valid
  // until the next call of a function.
  const Row* ReadOrFetch(uint64_t id, uint32_t tag, uint32_t now);
  // Like ReadOrFetch(), but makes a missing row if there is room.
  const Row* ReadOrMake(uint64_t id, uint32_t tag, uint32_t now);

  // Returns the row, for a change. If there is none and the id is admitted,
  // makes a row. A new row uses up one of `*reserved`. If `*reserved` is 0, the
  // new row needs room beyond all reserved rows. Returns null if the id is not
  // admitted. Returns null and sets `*dropped` if there is no room.
  Row* Update(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
              bool* dropped);
  // Adds a row of a restore. Returns the row, in which the caller sets the
  // elements and `updates`. If there is no room, drops the least recently used
  // row. Returns null if that is the new row. With a tier, uses one of
  // `*reserved` instead, and returns null only if memory cannot be allocated.
  Row* Put(uint64_t id, uint32_t tag, uint32_t last_use, size_t* reserved);
  // Ends a restore: sorts rows by their last use, and returns the ids that have
  // no row. Call after the last Put().
  RestoreLoss FinishRestore();

  // Reserves room for `rows` rows that Update() may make. Returns false, and
  // reserves nothing, if there is no room and no row may be evicted or moved to
  // the tier.
  bool Reserve(size_t rows);
  void Unreserve(size_t rows);
  // Returns true if Update() would make a row. May also return true for an id
  // that is neither in the tier nor admitted.
  bool UpdateWouldMake(uint64_t id, uint32_t tag, uint32_t now) const;
  // Returns true if Update() would need new room, but the tier is full, so that
  // its rows can only be swapped with rows in memory. Reads the tier.
  bool UpdateNeedsRoom(uint64_t id, uint32_t tag, uint32_t now);
  // Returns true if a row in memory can be swapped with a row in the tier.
  bool CanSwap() const;
  // Removes an id's row from the tier if it has expired.
  void ExpireSpilled(uint64_t id, uint32_t tag, uint32_t now);

  bool Remove(uint64_t id, uint32_t tag);
  // Removes up to `limit` expired rows, and moves up to `limit` rows out of
  // almost empty slabs. Returns true if there is more to do.
  bool Maintain(uint32_t now, size_t limit);

  Counters counters() const;

 private:
  bool Expired(const Row& row, uint32_t now) const {
    return now > row.last_use && now - row.last_use > time_to_live_;
  }
  // Returns how many new rows fit under max_rows without an eviction.
  size_t below_max() const {
    return max_rows_ - std::min(rows_.size(), max_rows_);
  }
  uint32_t FindAlive(uint64_t id, uint32_t tag, uint32_t now);
  bool HasRoomForOne(bool is_reserved, bool must);
  // Returns a new row in which only the id is set, or kNoRow if there is no
  // room. `must` is true if the room was promised before. In that case the
  // shard may exceed its budget if the tier is full.
  uint32_t NewRow(uint64_t id, uint32_t tag, size_t* reserved, bool must);
  uint32_t NewRestored(uint64_t id, uint32_t tag, uint32_t last_use);
  uint32_t Make(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
                bool must);
  void Evict(uint32_t number, Reason reason);
  bool EvictOldest(Reason reason);
  void Release(uint32_t number);

  bool may_evict() const {
    return options_.above_budget != AboveBudget::kRefuse;
  }
  // Loads the row of an id from the tier. Returns false if the tier has no such
  // row, or if the row has expired.
  bool FindSpilled(uint64_t id, uint32_t now);
  // Moves the row that FindSpilled() found into memory. Returns kNoRow if there
  // is no room.
  uint32_t Fetch(uint32_t tag, size_t* reserved, bool must);
  // Like Fetch(), but for a full tier: another row goes to the tier in
  // exchange. If that fails, exceeds the budget, as NewRow() does.
  uint32_t Swap(uint32_t tag);
  bool SpillRow(uint32_t number);
  // Reserves room in the tier for reserved rows that do not fit into memory:
  // the shard's present reservations and `rows` more. Returns false if the tier
  // has too little room.
  bool PromiseRoom(size_t rows);

  void Use(uint32_t number, Row* row, uint32_t now) {
    // Writes only if the second has changed, which keeps the cache line clean:
    // most uses happen in the second that is already stored.
    if (row->last_use < now) row->last_use = now;
    rows_.MakeNewest(number);
  }
  // Records that the row of `id` is removed in the current epoch.
  void AddRemoval(uint64_t id) { memory_.AddRemoval(id, snapshot_.epoch()); }
  bool Compact(size_t limit);

  const Options& options_;
  const InitialValue& initial_;
  const uint32_t time_to_live_;
  const size_t max_rows_;
  ShardRows rows_;
  Admission admission_;
  Removals removals_;
  SpilledRows spilled_;
  // True if the tier had no room when a row was last moved there.
  bool tier_is_full_ = false;
  ShardMemory memory_;
  ShardSnapshot snapshot_;
  // The rows by their last use. Not null during a restore that has no room for
  // all rows.
  std::unique_ptr<RestoreOrder> restore_order_;
  Counters counters_;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SHARD_H_
