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
  // Ids whose gradients were lost: they had rows when room was reserved, have
  // lost them since, and there is neither room for new ones nor may anything be
  // evicted.
  size_t dropped = 0;

  void Add(const PushResult& other) {
    updated += other.updated;
    not_admitted += other.not_admitted;
    dropped += other.dropped;
  }
};

// Of an id that has no row, the value is its initial one, wherever it is asked:
// having no row and having a new one look the same. So rows may be left out
// (admission) and taken away (eviction) without anybody seeing more than the
// loss of what had been learnt.
//
// A row's change is atomic: no Pull() sees half of it. A Push() is not, but for
// snapshots, which have all of a push or nothing. Pushes, pulls and snapshots
// go on side by side.
//
// A table with a tier loses no row for want of room: those that were not used
// for longest move there, and come back when they are asked for. If the tier
// has no room, pushes that need more rows are refused, as if there were none,
// and those of rows that are there change places with others.
// If it fails (a row cannot be read again), so does each later call, with
// DATA_LOSS.
//
// Time is passed in, by a clock of the caller's choice, from 1970 to 2106, and
// counts in whole seconds. If it goes back, rows live that much longer.
//
// Thread-safe. No clock, no I/O but the tier's, no thread of its own: call
// Maintain() now and then.
class Table {
 public:
  // Returns INVALID_ARGUMENT for options that cannot be.
  static absl::StatusOr<std::unique_ptr<Table>> Create(const Options& options);

  // Writes the values of `ids` to `out`, dim floats for each, in their order.
  // INVALID_ARGUMENT if `out` has another size. Ids may repeat.
  absl::Status Pull(absl::Span<const uint64_t> ids, absl::Time now,
                    absl::Span<float> out);

  // Calls `apply(gradient, value, slots)`, pointers to dim, dim and slots * dim
  // floats, once for each id that has a row or gets one; under a lock, so it
  // should only compute. An id that repeats is applied in turn; see
  // Deduplicate().
  //
  // If there is no room for the rows that it needs, nothing at all is applied,
  // and it returns RESOURCE_EXHAUSTED (RetryAfterOf() says when to come again).
  template <typename Apply>
  absl::StatusOr<PushResult> Push(absl::Span<const uint64_t> ids,
                                  absl::Span<const float> gradients,
                                  absl::Time now, const Apply& apply);

  // The two halves of Push(), for who answers a push before it is applied.
  // Reserve() makes room for the rows that a push of `ids` would make, or
  // returns RESOURCE_EXHAUSTED as Push() does. Push() then makes its rows there
  // and is not refused for want of room. Of pushes that are applied as one, the
  // reservations are merged. What is not used is given back.
  //
  // Both divide their work by shards into tasks for `run`, so `apply` may be
  // called by several threads at once, each with rows of its own. What comes of
  // it does not depend on who runs what. If the threads of `run` also pull, and
  // pulls make rows or fetch them from a tier, no snapshot may begin beside
  // such a push: it would wait for the push, that for a thread, and the
  // thread's pull for the snapshot. Beside Reserve() it may.
  absl::StatusOr<Reservation> Reserve(absl::Span<const uint64_t> ids,
                                      absl::Time now, RunTasks run = InTurn);
  template <typename Apply>
  absl::StatusOr<PushResult> Push(absl::Span<const uint64_t> ids,
                                  absl::Span<const float> gradients,
                                  absl::Time now, const Apply& apply,
                                  Reservation reservation,
                                  RunTasks run = InTurn);

  // Returns how many of them had rows.
  size_t Remove(absl::Span<const uint64_t> ids);

  // Removes and then puts in what a snapshot gave, without admission. Call
  // FinishRestore() after the last one, which orders rows by their last use.
  // Returns RESOURCE_EXHAUSTED, as Push() does, or INVALID_ARGUMENT if the
  // block's parts do not fit each other and the table; no row is put in then.
  absl::Status Restore(const RowBlock& block);
  void FinishRestore();

  // Removes rows whose time is over and gives memory back. Works for less than
  // a millisecond or so, on each shard; returns whether there is more to do.
  bool Maintain(absl::Time now);

  // Fixes the present epoch. Waits for the pushes that are running, and lets
  // new ones wait meanwhile; nothing else does. FAILED_PRECONDITION while
  // another snapshot is there, or if removals since `since` are not known any
  // more: take a full one.
  absl::StatusOr<std::unique_ptr<Snapshot>> BeginSnapshot(
      const SnapshotOptions& options);
  // No snapshot will ask for what was removed until this epoch.
  void ForgetRemovals(uint32_t epoch);

  const Options& options() const { return options_; }
  // For FindUnique() on what comes from outside.
  const HashKey& hash() const { return hash_; }
  Counters counters() const;
  // OK, or DATA_LOSS once the tier has failed: what each call returns then.
  absl::Status TierStatus() const {
    return spill_ == nullptr ? absl::OkStatus() : spill_->status();
  }
  // The longest run of each shard's index bounds each look-up.
  size_t LongestRun() const;

 private:
  friend class Reservation;
  friend class Snapshot;

  // So many rows at most are worked on before the shard's lock is free again.
  static constexpr size_t kRowsPerLock = 256;
  // So many rows are on the way into the cache at once. Less than that leaves
  // the memory idle, and no more fits into the first level.
  static constexpr size_t kPrefetch = Shard::kMaxPrefetch;

  struct alignas(64) Part {
    Part(const Options* options, const InitialValue* initial,
         const HashKey* hash, Spill* spill, uint32_t number)
        : shard(options, initial, hash, spill, number) {}
    mutable base::Mutex mu;
    Shard shard ABSL_GUARDED_BY(mu);
  };

  explicit Table(const Options& options);

  // Calls work(shard, number, begin, end) for pieces of the batch, with the
  // shard locked, until it returns false.
  using PieceWork = absl::FunctionRef<bool(Shard&, size_t, size_t, size_t)>;
  void OnPieces(const Batch& batch, ShardRange shards, PieceWork work);
  // Calls work(shard, place) for each place of the batch, with the shard locked
  // and its rows on the way into the cache.
  template <typename Work>
  void OnEach(const Batch& batch, ShardRange shards, const Work& work);
  template <typename Work>
  void OnEach(const Batch& batch, const Work& work) {
    OnEach(batch, {0, batch.shards()}, work);
  }

  // Removes rows of the tier whose time is over, a part of all at a time;
  // returns whether there are more to look at.
  bool Sweep(uint32_t now);

  absl::Status CheckSizes(size_t ids, size_t floats, const char* what) const;
  // Whether the id at a place of a batch needs a row that it has not.
  using WouldMake = absl::FunctionRef<bool(const Shard&, size_t)>;
  // The same where rows change places with those of the tier.
  using NeedsRoom = absl::FunctionRef<bool(Shard&, size_t)>;
  enum class Count {
    kIfShort,  // all ids are given a row while there is room for so many
    kAlways,   // takes the time to look for those that need one
  };
  // Asks each shard for a piece of the batch at a time: what does not fit
  // leaves no index behind for all of it.
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

  // Whoever makes, changes, moves or removes rows is inside.
  Gate gate_;
  base::Mutex snapshot_mu_;
  uint32_t epoch_ ABSL_GUARDED_BY(snapshot_mu_) = 1;
  std::unique_ptr<SnapshotPlan> plan_ ABSL_GUARDED_BY(snapshot_mu_);

  base::Mutex sweep_mu_;
  std::unique_ptr<Spill::Walk> sweep_ ABSL_GUARDED_BY(sweep_mu_);
  uint32_t next_sweep_ ABSL_GUARDED_BY(sweep_mu_) = 0;
};

// Returns `time` as rows keep it.
uint32_t SecondsOf(absl::Time time);

template <typename Work>
void Table::OnEach(const Batch& batch, ShardRange shards, const Work& work) {
  OnPieces(batch, shards, [&](Shard& shard, size_t, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i += kPrefetch) {
      const size_t some = std::min(end, i + kPrefetch);
      shard.Prefetch(batch.hashes() + i, some - i);
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
  // Where room costs a way to the tier, none is made that is not needed.
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
  const Gate::Visit visit(&gate_);  // of all tasks: a snapshot has all or none
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
