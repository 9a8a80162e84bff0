// A sparse table: rows of floats by 64-bit ids.

#ifndef PENSTOCK_PS_SPARSE_TABLE_H_
#define PENSTOCK_PS_SPARSE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ps/sparse/batch.h"
#include "ps/sparse/gate.h"
#include "ps/sparse/options.h"
#include "ps/sparse/reservation.h"
#include "ps/sparse/row_block.h"
#include "ps/sparse/shard.h"
#include "ps/sparse/snapshot.h"
#include "ps/sparse/spill.h"
#include "ps/sparse/tasks.h"
#include "transport/base/mutex.h"

namespace penstock::ps::sparse {

struct PushResult {
  size_t updated = 0;
  size_t not_admitted = 0;
  // The number of ids whose gradients were lost. Such an id had a row when room
  // was reserved, and lost the row before the push. There was no room for a new
  // row, and nothing could be evicted.
  size_t dropped = 0;

  void Add(const PushResult& other) {
    updated += other.updated;
    not_admitted += other.not_admitted;
    dropped += other.dropped;
  }
};

// A table of rows by id. An id without a row has its initial value, so an
// absent row is equal to a new row. Rows may therefore be left out (admission)
// or dropped (eviction); only their training is lost.
//
// Each row changes atomically: no Pull() sees half of a change. A Push() as a
// whole is atomic only to snapshots, which contain all of a push or nothing.
// Pushes, pulls and snapshots run concurrently.
//
// A table with a tier loses no row for lack of room. The least recently used
// rows move to the tier, and return on demand. If the tier is full, pushes that
// need new rows are refused, and pushes to rows in the tier swap them with rows
// in memory. If the tier fails because a row cannot be read back, each later
// call fails with DATA_LOSS.
//
// The caller passes the time, from 1970 to 2106, in whole seconds. If the time
// goes back, rows expire later by the same amount.
//
// Thread-safe. Uses no clock, no thread, and no I/O except the tier's. Call
// Maintain() periodically.
class Table {
 public:
  // Makes an empty table. Returns INVALID_ARGUMENT for impossible options.
  static absl::StatusOr<std::unique_ptr<Table>> Create(const Options& options);

  // Writes the values of `ids` to `out` in order, dim floats each. Returns
  // INVALID_ARGUMENT if `out` has another size. Ids may repeat.
  absl::Status Pull(absl::Span<const uint64_t> ids, absl::Time now,
                    absl::Span<float> out);

  // Calls `apply(gradient, value, slots)` once for each id that has or gets a
  // row. The pointers have dim, dim and slots * dim floats. `apply` runs under
  // a lock and should only compute. If an id is repeated, `apply` is called for
  // each occurrence, in order; see SumRows().
  //
  // Returns RESOURCE_EXHAUSTED, and applies nothing, if there is no room for
  // the new rows.
  template <typename Apply>
  absl::StatusOr<PushResult> Push(absl::Span<const uint64_t> ids,
                                  absl::Span<const float> gradients,
                                  absl::Time now, const Apply& apply);

  // Do the work of Push() in two halves, for callers that answer a push before
  // they apply it. Reserve() makes room for the rows that a push of `ids` would
  // make, or returns RESOURCE_EXHAUSTED as Push() does. Push() then uses that
  // room, and is not refused for lack of room. Merge the reservations of pushes
  // that are applied together. The reservation's destructor returns unused
  // room.
  //
  // Both split their work by shards into tasks for `run`. Several threads may
  // call `apply` concurrently, each for different rows. The result does not
  // depend on the number of threads.
  //
  // Avoid this deadlock: the threads of `run` also serve pulls that make or
  // fetch rows, and a snapshot begins during the Push(). The snapshot waits for
  // the push, the push for a thread, and the thread's pull for the snapshot. A
  // snapshot may begin during Reserve().
  absl::StatusOr<Reservation> Reserve(absl::Span<const uint64_t> ids,
                                      absl::Time now, RunTasks run = InTurn);
  template <typename Apply>
  absl::StatusOr<PushResult> Push(absl::Span<const uint64_t> ids,
                                  absl::Span<const float> gradients,
                                  absl::Time now, const Apply& apply,
                                  Reservation reservation,
                                  RunTasks run = InTurn);

  // Removes the rows of `ids`. Returns how many of the ids had rows.
  size_t Remove(absl::Span<const uint64_t> ids);

  // Removes the block's removed ids, then adds its rows without admission. If a
  // shard has no room for all rows, drops the shard's least recently used rows.
  // A table with a tier returns RESOURCE_EXHAUSTED instead, as Push() does, and
  // adds no row of the block. Returns INVALID_ARGUMENT if the block's parts do
  // not fit each other or the table.
  //
  // Call FinishRestore() after the last block, and before Pull() and Push().
  // FinishRestore() sorts rows by their last use, and returns how many ids have
  // lost their rows.
  absl::Status Restore(const RowBlock& block);
  RestoreLoss FinishRestore();

  // Removes expired rows and frees memory. Works for about a millisecond at
  // most on each shard. Returns true if there is more to do.
  bool Maintain(absl::Time now);

  // Begins a snapshot of the present state. Waits for running pushes and blocks
  // new ones meanwhile. Returns FAILED_PRECONDITION while another snapshot
  // exists. Also returns FAILED_PRECONDITION if the removals since `since` are
  // no longer known; take a full snapshot in that case.
  absl::StatusOr<std::unique_ptr<Snapshot>> BeginSnapshot(
      const SnapshotOptions& options);
  // Forgets the removals up to this epoch. Call when no snapshot needs them.
  void ForgetRemovals(uint32_t epoch);

  const Options& options() const { return options_; }
  // Returns the key of the hash, for FindUnique() on external ids.
  const HashKey& hash() const { return hash_; }
  Counters counters() const;
  // Returns OK, or the DATA_LOSS that each call returns after the tier failed.
  absl::Status TierStatus() const {
    return spill_ == nullptr ? absl::OkStatus() : spill_->status();
  }
  // Returns the maximum over all shards of RowIndex::LongestRun(), which bounds
  // each look-up. Visits all buckets.
  size_t LongestRun() const;

 private:
  friend class Reservation;
  friend class Snapshot;

  // Limits how many rows are processed under one lock of the shard.
  static constexpr size_t kRowsPerLock = 256;
  // The number of rows that are prefetched together. Fewer rows leave the
  // memory idle; more rows do not fit into the L1 cache.
  static constexpr size_t kPrefetch = ShardRows::kMaxPrefetch;

  struct alignas(64) Part {
    Part(const Options* options, const InitialValue* initial,
         const HashKey* hash, Spill* spill, uint32_t number)
        : shard(options, initial, hash, spill, number) {}
    mutable base::Mutex mu;
    Shard shard ABSL_GUARDED_BY(mu);
  };

  explicit Table(const Options& options);

  // The work on a piece of a batch: work(shard, number, begin, end), with the
  // shard locked. If `work` returns false, the remaining pieces are skipped.
  using PieceWork = absl::FunctionRef<bool(Shard&, size_t, size_t, size_t)>;
  void OnPieces(const Batch& batch, ShardRange shards, PieceWork work);
  // Calls work(shard, place) for each index of the batch, with the shard
  // locked. Prefetches the shard's rows.
  template <typename Work>
  void OnEach(const Batch& batch, ShardRange shards, const Work& work);
  template <typename Work>
  void OnEach(const Batch& batch, const Work& work) {
    OnEach(batch, {0, batch.shards()}, work);
  }

  // Removes expired rows of the tier, a part per call. Returns true if more
  // rows are left to check.
  bool Sweep(uint32_t now);

  absl::Status CheckSizes(size_t ids, size_t floats, const char* what) const;
  // A function that returns true if the id at an index of a batch needs a new
  // row.
  using WouldMake = absl::FunctionRef<bool(const Shard&, size_t)>;
  // A function that returns true if the id at an index of a batch needs room
  // that only a swap with the tier can provide.
  using NeedsRoom = absl::FunctionRef<bool(Shard&, size_t)>;
  enum class Count {
    kIfShort,  // reserve for all ids if there is room
    kAlways,   // reserve only for ids that need a row
  };
  // Reserves room in pieces, so that a refused batch does not grow the index to
  // full size.
  absl::StatusOr<Reservation> ReserveFor(const Batch& batch, Count count,
                                         WouldMake would_make,
                                         NeedsRoom needs_room, RunTasks run);
  absl::Status NoRoom() const;
  absl::StatusOr<Reservation> ReserveUpdates(const Batch& batch, Count count,
                                             absl::Span<const uint64_t> ids,
                                             uint32_t now, RunTasks run);
  template <typename Apply>
  absl::StatusOr<PushResult> Update(const Batch& batch,
                                    absl::Span<const uint64_t> ids,
                                    absl::Span<const float> gradients,
                                    uint32_t now, const Apply& apply,
                                    Reservation* reservation, RunTasks run);
  size_t RemoveInside(absl::Span<const uint64_t> ids);
  void EndSnapshot();

  const Options options_;
  const HashKey hash_;
  const InitialValue initial_;
  const int shard_bits_;
  const std::unique_ptr<Spill> spill_;  // null without a tier
  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<uint64_t> refused_{0};

  // Held by every function that makes, changes, moves or removes rows. Closed
  // while a snapshot begins.
  Gate gate_;
  base::Mutex snapshot_mu_;
  uint32_t epoch_ ABSL_GUARDED_BY(snapshot_mu_) = 1;
  std::unique_ptr<SnapshotPlan> plan_ ABSL_GUARDED_BY(snapshot_mu_);

  base::Mutex sweep_mu_;
  std::unique_ptr<Spill::Walk> sweep_ ABSL_GUARDED_BY(sweep_mu_);
  uint32_t next_sweep_ ABSL_GUARDED_BY(sweep_mu_) = 0;
};

// Converts `time` to the seconds that rows store.
uint32_t SecondsOf(absl::Time time);

template <typename Work>
void Table::OnEach(const Batch& batch, ShardRange shards, const Work& work) {
  OnPieces(batch, shards, [&](Shard& shard, size_t, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += kPrefetch) {
      const size_t some = std::min(end, i + kPrefetch);
      shard.rows().Prefetch(batch.hashes() + i, some - i);
      for (size_t place = i; place < some; ++place) work(shard, place);
    }
    return true;
  });
}

template <typename Apply>
absl::StatusOr<PushResult> Table::Push(absl::Span<const uint64_t> ids,
                                       absl::Span<const float> gradients,
                                       absl::Time now, const Apply& apply) {
  absl::Status status = CheckSizes(ids.size(), gradients.size(), "gradients");
  if (!status.ok()) return status;
  const uint32_t seconds = SecondsOf(now);
  const Batch batch(ids, hash_, shard_bits_);
  // Reserves room only for rows that need it if there is a tier, because room
  // in the tier is expensive.
  absl::StatusOr<Reservation> reservation = ReserveUpdates(
      batch, spill_ == nullptr ? Count::kIfShort : Count::kAlways, ids, seconds,
      InTurn);
  if (!reservation.ok()) return reservation.status();
  return Update(batch, ids, gradients, seconds, apply, &*reservation, InTurn);
}

template <typename Apply>
absl::StatusOr<PushResult> Table::Push(absl::Span<const uint64_t> ids,
                                       absl::Span<const float> gradients,
                                       absl::Time now, const Apply& apply,
                                       Reservation reservation, RunTasks run) {
  absl::Status status = CheckSizes(ids.size(), gradients.size(), "gradients");
  if (status.ok()) status = reservation.CheckIsOf(this);
  if (!status.ok()) return status;
  const Batch batch(ids, hash_, shard_bits_);
  return Update(batch, ids, gradients, SecondsOf(now), apply, &reservation,
                run);
}

template <typename Apply>
absl::StatusOr<PushResult> Table::Update(const Batch& batch,
                                         absl::Span<const uint64_t> ids,
                                         absl::Span<const float> gradients,
                                         uint32_t now, const Apply& apply,
                                         Reservation* reservation,
                                         RunTasks run) {
  const size_t dim = options_.dim;
  const Gate::Visit visit(&gate_);  // covers all tasks, for snapshots
  std::vector<PushResult> results(TasksOf(batch));
  run(results.size(), [&](size_t task) {
    PushResult result;
    const auto update = [&](Shard& shard, size_t place) {
      const uint32_t position = batch.position(place);
      bool dropped = false;
      Row* const row =
          shard.Update(ids[position], batch.tag(place), now,
                       reservation->OfShard(batch.shard(place)), &dropped);
      if (row == nullptr) {
        ++(dropped ? result.dropped : result.not_admitted);
        return;
      }
      float* const value = row->elements();
      apply(gradients.data() + position * dim, value, value + dim);
      ++result.updated;
    };
    OnEach(batch, ShardsOf(batch, task, results.size()), update);
    results[task] = result;
  });
  absl::Status status = TierStatus();
  if (!status.ok()) return status;
  PushResult all;
  for (const PushResult& result : results) all.Add(result);
  return all;
}

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_TABLE_H_
