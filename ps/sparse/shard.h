// One shard of a sparse table: some of its ids, with all that belongs to them.

#ifndef PENSTOCK_PS_SPARSE_SHARD_H_
#define PENSTOCK_PS_SPARSE_SHARD_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "ps/sparse/admission.h"
#include "ps/sparse/copies.h"
#include "ps/sparse/hash.h"
#include "ps/sparse/index.h"
#include "ps/sparse/initial_value.h"
#include "ps/sparse/options.h"
#include "ps/sparse/recency.h"
#include "ps/sparse/removals.h"
#include "ps/sparse/row_block.h"
#include "ps/sparse/row_store.h"
#include "ps/sparse/spill.h"

namespace penstock::ps::sparse {

// What has happened since the table was made; of rows and bytes, what there is.
struct Counters {
  uint64_t rows = 0;
  uint64_t spilled_rows = 0;  // of them, those in the tier
  uint64_t reserved = 0;      // rows that reservations hold
  uint64_t bytes = 0;         // as Options::budget_bytes counts; no copies
  uint64_t hits = 0;          // ids of pulls and pushes that had a row
  uint64_t misses = 0;        // and that had none
  uint64_t created = 0;
  uint64_t not_admitted = 0;   // gradients without a row, as Admission says
  uint64_t refused = 0;        // pushes and reservations, as a whole
  uint64_t dropped = 0;        // see Push()
  uint64_t expired = 0;        // evicted: time to live
  uint64_t over_capacity = 0;  // evicted: max_rows
  uint64_t over_budget = 0;    // evicted: budget_bytes, or no memory
  uint64_t removed = 0;        // by Remove()
  uint64_t spilled = 0;        // moved to the tier
  uint64_t fetched = 0;        // and back

  void Add(const Counters& other);
};

// With a tier, the rows that were not used for longest are there: SpillRow()
// moves one out, and Fetch() back when it is asked for.
//
// `tag` is always the low half of the id's hash. `now` is in seconds. Not
// thread-safe.
class Shard {
 public:
  enum class Reason { kExpired, kCapacity, kBudget, kRemoved };

  // All outlive it. Of limits that `options` gives to the table it takes its
  // share. `spill` is null without a tier, which knows the shard by `number`.
  Shard(const Options* options, const InitialValue* initial,
        const HashKey* hash, Spill* spill, uint32_t number);

  ~Shard();

  static constexpr size_t kMaxPrefetch = 128;
  // Fetches into the cache what the calls for these hashes will touch, for
  // kMaxPrefetch of them at most.
  void Prefetch(const uint64_t* hashes, size_t count) const;

  // Returns the row, used now; null if there is none, or its time is over.
  // It does not look into the tier.
  const Row* Read(uint64_t id, uint32_t tag, uint32_t now);
  // The same, but brings the row from the tier, if it is there. It stays until
  // the next call.
  const Row* ReadOrFetch(uint64_t id, uint32_t tag, uint32_t now);
  // The same, but makes the row if there is room for it.
  const Row* ReadOrMake(uint64_t id, uint32_t tag, uint32_t now);

  // Returns the row, for a change: finds it, or makes it if the id is admitted.
  // A row that it makes is one of `*reserved`, and counts that down, or, if
  // there are none left, one for which there is room beside all reserved ones.
  // Null: not admitted, or (`*dropped`) no room.
  Row* Update(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
              bool* dropped);
  // The same without admission, and with that as the last use.
  Row* Put(uint64_t id, uint32_t tag, uint32_t last_use, size_t* reserved,
           bool* dropped);

  // Makes room for `rows` that Update() may have to make. Returns false, and
  // has reserved nothing, if there is none and nothing may be evicted for it,
  // or moved to the tier.
  bool Reserve(size_t rows);
  void Unreserve(size_t rows);
  // Whether Update(), or Put(), would have to make a row.
  bool UpdateWouldMake(uint64_t id, uint32_t tag, uint32_t now) const;
  bool PutWouldMake(uint64_t id, uint32_t tag) const {
    return NumberOf(id, tag) == kNoRow;
  }
  // The same of Update() where the tier has no more room, and a row there can
  // change places with one in memory: asks the tier whether it has the id.
  bool UpdateNeedsRoom(uint64_t id, uint32_t tag, uint32_t now);
  // Whether that is so.
  bool CanSwap() const;
  // Of an id of the tier: removes it if its time is over.
  void ExpireSpilled(uint64_t id, uint32_t tag, uint32_t now);

  bool Remove(uint64_t id, uint32_t tag);
  // Removes rows whose time is over, and moves rows out of slabs that are all
  // but empty; `limit` of each at most. Returns whether there is more to do.
  bool Maintain(uint32_t now, size_t limit);
  // Orders rows by their last use, after Put().
  void Sort();

  // From now on changes are of epoch plan->at + 1. With `walk` the snapshot
  // takes this shard's rows, and the plan stays until EndSnapshot().
  void BeginSnapshot(SnapshotPlan* plan);
  // Adds up to `limit` rows, and first of all the removed ids. Returns whether
  // there are more.
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
  // So many rows may be added before one is evicted for each.
  size_t below_max() const {
    return max_rows_ - std::min(rows_.size(), max_rows_);
  }
  uint32_t FindAlive(uint64_t id, uint32_t tag, uint32_t now);
  // The most that rows and index may take now.
  size_t ByteLimit();
  // Counts what it takes in the pool.
  void CountBytes();
  bool HasRoomFor(size_t rows, size_t byte_limit);
  bool GrowFor(size_t rows, size_t byte_limit);
  bool HasRoomForOne(bool is_reserved, bool must);
  // Returns a row of which only the id is set. If it `must` make one, what has
  // no room in the tier either goes above the budget, since it has been
  // promised. kNoRow: there is no room.
  uint32_t NewRow(uint64_t id, uint32_t tag, size_t* reserved, bool must);
  uint32_t Make(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
                bool must);
  void Evict(uint32_t number, Reason reason);
  bool EvictOldest(Reason reason);
  void Release(uint32_t number);

  bool may_evict() const {
    return options_.above_budget != AboveBudget::kRefuse;
  }
  // Whether the id has a row in the tier, which is then in fetched_; none whose
  // time is over.
  bool FindSpilled(uint64_t id, uint32_t now);
  // Forgets what FindSpilled() has found.
  void EraseSpilled(uint64_t id);
  // Moves what FindSpilled() has found into memory. kNoRow: there is no room.
  uint32_t Fetch(uint32_t tag, size_t* reserved, bool must);
  // The same, where the tier's only room is that of the row: another moves
  // there. If that fails, goes above the budget, as NewRow() does.
  uint32_t Swap(uint32_t tag);
  // Takes what is in fetched_ into a row, which has been made for it.
  void TakeFetched(uint32_t number);
  bool SpillRow(uint32_t number);
  // Keeps room in the tier for what of so many rows more, beside those that are
  // reserved, the memory cannot hold at once.
  bool PromiseRoom(size_t rows);

  // Copies what a snapshot would not find any more.
  void CopyForSnapshot(uint32_t number, const Row& row) {
    if (plan_ != nullptr && number >= cursor_ && plan_->Has(row)) {
      copies_.Add(row, plan_);
    }
  }
  // Call it before each change of a row.
  void Preserve(uint32_t number, Row* row) {
    if (row->changed == epoch_) return;
    CopyForSnapshot(number, *row);
    row->changed = epoch_;
  }
  void Use(uint32_t number, Row* row, uint32_t now) {
    // Most uses are of the second that is there: they leave the line clean.
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
  Pool* const pool_;         // null: there is none
  size_t counted_ = 0;       // in the pool
  RowIndex index_;
  RowStore rows_;
  Recency recency_;
  Admission admission_;
  Removals removals_;
  uint32_t drain_from_ = 0;

  uint32_t epoch_ = 1;
  SnapshotPlan* plan_ = nullptr;
  uint32_t cursor_ = kNoRow;  // rows before it have been taken
  bool removed_taken_ = false;
  Copies copies_;
  Counters counters_;

  Spill* const spill_;
  const uint32_t number_;
  size_t spilled_rows_ = 0;
  size_t promised_ = 0;  // of spill_
  // The last row that was to move there had no room.
  bool tier_is_full_ = false;
  RowBuffer fetched_;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_SHARD_H_
