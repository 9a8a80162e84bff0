// A sparse table: rows of floats by 64-bit ids.

#ifndef PENSTOCK_PS_SPARSE_TABLE_H_
#define PENSTOCK_PS_SPARSE_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "ps/sparse/batch.h"
#include "ps/sparse/gate.h"
#include "ps/sparse/options.h"
#include "ps/sparse/row_block.h"
#include "ps/sparse/shard.h"
#include "ps/sparse/snapshot.h"
#include "transport/base/mutex.h"

namespace penstock::ps::sparse {

struct PushResult {
  size_t updated = 0;
  size_t not_admitted = 0;
  // Ids whose gradients were lost, as memory failed although it was reserved:
  // only where rows that the push relies on are removed while it runs, memory
  // is exhausted and nothing may be evicted.
  size_t dropped = 0;
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
// Time is passed in, by a clock of the caller's choice, from 1970 to 2106, and
// counts in whole seconds. If it goes back, rows live that much longer.
//
// Thread-safe. No clock, no I/O, no thread of its own: call Maintain() now and
// then.
class Table {
 public:
  // Returns what Validate() returns for options that cannot be.
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
  // The longest run of each shard's index bounds each look-up.
  size_t LongestRun() const;

 private:
  friend class Snapshot;

  // So many rows at most are worked on before the shard's lock is free again.
  static constexpr size_t kRowsPerLock = 256;
  // So many misses of the cache at once.
  static constexpr size_t kPrefetch = 32;

  struct alignas(64) Part {
    Part(const Options* options, const InitialValue* initial,
         const HashKey* hash)
        : shard(options, initial, hash) {}
    mutable base::Mutex mu;
    Shard shard ABSL_GUARDED_BY(mu);
  };
  using Reservation = std::vector<uint32_t>;  // rows of each shard

  explicit Table(const Options& options);

  // Calls work(shard, place) for each place of the batch, with the shard locked
  // and its rows on the way into the cache.
  template <typename Work>
  void OnEach(const Batch& batch, const Work& work);

  absl::Status CheckSizes(size_t ids, size_t floats, const char* what) const;
  // Reserves rows for all ids, or, where there is no room for so many, for
  // those of which would_make(shard, place) says that they need one.
  template <typename WouldMake>
  absl::StatusOr<Reservation> Reserve(const Batch& batch,
                                      const WouldMake& would_make);
  absl::Status Refuse(const Reservation& reservation);
  void Unreserve(const Reservation& reservation);
  size_t RemoveInside(absl::Span<const uint64_t> ids);
  void EndSnapshot();

  const Options options_;
  const HashKey hash_;
  const InitialValue initial_;
  const int shard_bits_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::atomic<uint64_t> refused_{0};

  // Whoever makes, changes or removes rows is inside.
  Gate gate_;
  base::Mutex snapshot_mu_;
  uint32_t epoch_ ABSL_GUARDED_BY(snapshot_mu_) = 1;
  std::unique_ptr<SnapshotPlan> plan_ ABSL_GUARDED_BY(snapshot_mu_);
};

// Returns `time` as rows keep it.
uint32_t SecondsOf(absl::Time time);

template <typename Work>
void Table::OnEach(const Batch& batch, const Work& work) {
  for (size_t s = 0; s < batch.shards(); ++s) {
    Part& part = *parts_[s];
    const size_t end = batch.End(s);
    for (size_t begin = batch.Begin(s); begin < end; begin += kRowsPerLock) {
      const size_t stop = std::min(end, begin + kRowsPerLock);
      base::MutexLock lock(&part.mu);
      for (size_t i = begin; i < stop; i += kPrefetch) {
        const size_t some = std::min(stop, i + kPrefetch);
        part.shard.Prefetch(batch.hashes() + i, some - i);
        for (size_t place = i; place < some; ++place) work(part.shard, place);
      }
    }
  }
}

template <typename WouldMake>
absl::StatusOr<Table::Reservation> Table::Reserve(const Batch& batch,
                                                  const WouldMake& would_make) {
  Reservation reservation(batch.shards());
  bool refused = false;
  for (size_t s = 0; s < batch.shards(); ++s) {
    const size_t begin = batch.Begin(s);
    const size_t end = batch.End(s);
    if (begin == end) continue;
    Part& part = *parts_[s];
    base::MutexLock lock(&part.mu);
    size_t rows = end - begin;
    bool reserved = part.shard.Reserve(rows);
    if (!reserved) {
      rows = 0;
      for (size_t i = begin; i < end; ++i) rows += would_make(part.shard, i);
      reserved = rows == 0 || part.shard.Reserve(rows);
    }
    if (!reserved) {
      refused = true;
      break;
    }
    reservation[s] = static_cast<uint32_t>(rows);
  }
  if (refused) return Refuse(reservation);
  return reservation;
}

template <typename Apply>
absl::StatusOr<PushResult> Table::Push(absl::Span<const uint64_t> ids,
                                       absl::Span<const float> gradients,
                                       absl::Time now, const Apply& apply) {
  const size_t dim = options_.dim;
  absl::Status status = CheckSizes(ids.size(), gradients.size(), "gradients");
  if (!status.ok()) return status;
  const uint32_t seconds = SecondsOf(now);
  const Batch batch(ids, hash_, shard_bits_);
  const Gate::Visit visit(&gate_);
  absl::StatusOr<Reservation> reservation =
      Reserve(batch, [&](const Shard& shard, size_t place) {
        return shard.UpdateWouldMake(ids[batch.position(place)],
                                     batch.tag(place), seconds);
      });
  if (!reservation.ok()) return reservation.status();
  PushResult result;
  OnEach(batch, [&](Shard& shard, size_t place) {
    const uint32_t position = batch.position(place);
    bool dropped = false;
    Row* const row =
        shard.Update(ids[position], batch.tag(place), seconds, &dropped);
    if (row == nullptr) {
      ++(dropped ? result.dropped : result.not_admitted);
      return;
    }
    float* const value = row->elements();
    apply(gradients.data() + position * dim, value, value + dim);
    ++result.updated;
  });
  Unreserve(*reservation);
  return result;
}

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_TABLE_H_
