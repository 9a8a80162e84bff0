#include "ps/sparse/table.h"

#include <algorithm>
#include <limits>

#include "absl/strings/str_cat.h"

namespace penstock::ps::sparse {
namespace {

// Limits how many rows of a shard one Maintain() removes or moves.
constexpr size_t kRowsPerMaintenance = 1024;
// Limits how many rows of the tier one Maintain() checks.
constexpr size_t kRowsPerSweep = 4096;

int Log2(size_t power) {
  int log = 0;
  while ((size_t{1} << log) < power) ++log;
  return log;
}

}  // namespace

uint32_t SecondsOf(absl::Time time) {
  const int64_t seconds = absl::ToUnixSeconds(time);
  constexpr int64_t kLast = std::numeric_limits<uint32_t>::max();
  return static_cast<uint32_t>(std::min(std::max<int64_t>(seconds, 0), kLast));
}

absl::StatusOr<std::unique_ptr<Table>> Table::Create(const Options& options) {
  if (absl::Status status = Validate(options); !status.ok()) return status;
  const bool spills = options.above_budget == AboveBudget::kSpill;
  if (spills != (options.tier != nullptr)) {
    return absl::InvalidArgumentError(
        absl::StrCat("sparse table '", options.name,
                     "': a table has a tier if it spills, and only then"));
  }
  return std::unique_ptr<Table>(new Table(options));
}

Table::Table(const Options& options)
    : options_(options),
      hash_(options.hash_seed),
      initial_(options.initial, options.seed, options.name),
      shard_bits_(Log2(options.shards)),
      spill_(
          options.tier == nullptr
              ? nullptr
              : std::make_unique<Spill>(
                    options.name, options.tier,
                    RowStore::StrideOf(options.dim * (1 + options.slots())))) {
  parts_.reserve(options.shards);
  for (uint32_t i = 0; i < options.shards; ++i) {
    parts_.push_back(
        std::make_unique<Part>(&options_, &initial_, &hash_, spill_.get(), i));
  }
}

absl::Status Table::CheckSizes(size_t ids, size_t floats,
                               const char* what) const {
  if (ids > std::numeric_limits<uint32_t>::max() ||
      floats != ids * options_.dim) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sparse table '", options_.name, "': ", ids, " ids of ", options_.dim,
        " floats do not fit ", floats, " of ", what));
  }
  return absl::OkStatus();
}

absl::Status Table::Pull(absl::Span<const uint64_t> ids, absl::Time now,
                         absl::Span<float> out) {
  const size_t dim = options_.dim;
  absl::Status status = CheckSizes(ids.size(), out.size(), "values");
  if (!status.ok()) return status;
  const uint32_t seconds = SecondsOf(now);
  const Batch batch(ids, hash_, shard_bits_);
  std::vector<uint32_t> missing;
  const auto read = [&](const Row* row, uint32_t position) {
    if (row == nullptr) return missing.push_back(position);
    std::copy_n(row->elements(), dim, out.data() + position * dim);
  };
  if (options_.store_on_pull) {
    const Gate::Visit visit(&gate_);
    OnEach(batch, [&](Shard& shard, size_t place) {
      const uint32_t i = batch.position(place);
      read(shard.ReadOrMake(ids[i], batch.tag(place), seconds), i);
    });
  } else if (spill_ != nullptr) {
    const Gate::Visit visit(&gate_);
    OnEach(batch, [&](Shard& shard, size_t place) {
      const uint32_t i = batch.position(place);
      read(shard.ReadOrFetch(ids[i], batch.tag(place), seconds), i);
    });
  } else {
    OnEach(batch, [&](Shard& shard, size_t place) {
      const uint32_t i = batch.position(place);
      read(shard.Read(ids[i], batch.tag(place), seconds), i);
    });
  }
  // Fills the missing rows without a lock, because this takes longer than
  // reading the rows.
  for (const uint32_t i : missing) {
    initial_.Fill(ids[i], dim, out.data() + i * dim);
  }
  return TierStatus();
}

void Table::OnPieces(const Batch& batch, ShardRange shards, PieceWork work) {
  for (size_t s = shards.begin; s < shards.end; ++s) {
    Part& part = *parts_[s];
    const size_t end = batch.End(s);
    for (size_t begin = batch.Begin(s); begin < end; begin += kRowsPerLock) {
      base::MutexLock lock(&part.mu);
      if (!work(part.shard, s, begin, std::min(end, begin + kRowsPerLock))) {
        return;
      }
    }
  }
}

absl::StatusOr<Reservation> Table::ReserveFor(const Batch& batch, Count count,
                                              WouldMake would_make,
                                              NeedsRoom needs_room,
                                              RunTasks run) {
  Reservation reservation(this);
  std::atomic<bool> refused{false};
  const auto reserve = [&](Shard& shard, size_t s, size_t begin, size_t end) {
    if (refused) return false;
    size_t rows = end - begin;
    bool has_room = count == Count::kIfShort && shard.Reserve(rows);
    if (!has_room) {
      rows = 0;
      for (size_t i = begin; i < end; ++i) {
        if ((i - begin) % kPrefetch == 0) {
          shard.rows().Prefetch(batch.hashes() + i,
                                std::min(kPrefetch, end - i));
        }
        rows += would_make(shard, i);
      }
      has_room = shard.Reserve(rows);
    }
    if (!has_room && shard.CanSwap()) {
      rows = 0;
      for (size_t i = begin; i < end; ++i) rows += needs_room(shard, i);
      has_room = shard.Reserve(rows);
    }
    if (!has_room) {
      refused = true;
      return false;
    }
    *reservation.OfShard(s) += rows;
    return true;
  };
  const size_t tasks = TasksOf(batch);
  run(tasks, [&](size_t task) {
    OnPieces(batch, ShardsOf(batch, task, tasks), reserve);
  });
  absl::Status tier = TierStatus();
  if (!tier.ok()) return tier;
  if (!refused) return reservation;
  ++refused_;
  return NoRoom();
}

absl::Status Table::NoRoom() const {
  if (spill_ != nullptr) {
    return Exhausted(
        options_, absl::StrCat("there is no room for more rows, nor on disk: ",
                               spill_->no_room().message()));
  }
  if (options_.budget_bytes > 0 || options_.pool == nullptr) {
    return Exhausted(options_,
                     "there is no room for more rows: give it a larger "
                     "budget_bytes, or let it evict or spill");
  }
  return Exhausted(
      options_,
      absl::StrCat("there is no room for more rows: tables without a "
                   "budget_bytes take ",
                   options_.pool->bytes(), " bytes here, and may take ",
                   options_.pool->limit(), ": ", options_.pool->remedy()));
}

absl::StatusOr<Reservation> Table::ReserveUpdates(
    const Batch& batch, Count count, absl::Span<const uint64_t> ids,
    uint32_t now, RunTasks run) {
  const auto would_make = [&](const Shard& shard, size_t place) {
    return shard.UpdateWouldMake(ids[batch.position(place)], batch.tag(place),
                                 now);
  };
  const auto needs_room = [&](Shard& shard, size_t place) {
    return shard.UpdateNeedsRoom(ids[batch.position(place)], batch.tag(place),
                                 now);
  };
  if (spill_ == nullptr) {
    return ReserveFor(batch, count, would_make, needs_room, run);
  }
  // Enters the gate, because rows move to the tier and no snapshot may begin
  // meanwhile. Each task enters separately, because a thread may run tasks of
  // other visitors in between.
  const auto visit_and_run = [&](size_t tasks,
                                 absl::FunctionRef<void(size_t)> task) {
    run(tasks, [&](size_t i) {
      const Gate::Visit visit(&gate_);
      task(i);
    });
  };
  return ReserveFor(batch, count, would_make, needs_room, visit_and_run);
}

absl::StatusOr<Reservation> Table::Reserve(absl::Span<const uint64_t> ids,
                                           absl::Time now, RunTasks run) {
  absl::Status status =
      CheckSizes(ids.size(), ids.size() * options_.dim, "gradients");
  if (!status.ok()) return status;
  return ReserveUpdates(Batch(ids, hash_, shard_bits_), Count::kAlways, ids,
                        SecondsOf(now), run);
}

size_t Table::Remove(absl::Span<const uint64_t> ids) {
  const Gate::Visit visit(&gate_);
  return RemoveInside(ids);
}

size_t Table::RemoveInside(absl::Span<const uint64_t> ids) {
  const Batch batch(ids, hash_, shard_bits_);
  size_t removed = 0;
  OnEach(batch, [&](Shard& shard, size_t place) {
    removed += shard.Remove(ids[batch.position(place)], batch.tag(place));
  });
  return removed;
}

absl::Status Table::Restore(const RowBlock& block) {
  const size_t dim = options_.dim;
  const size_t slots = dim * options_.slots();
  const size_t rows = block.ids.size();
  absl::Status status = CheckSizes(rows, block.values.size(), "values");
  if (!status.ok()) return status;
  if (block.slots.size() != rows * slots || block.last_use.size() != rows ||
      block.updates.size() != rows) {
    return absl::InvalidArgumentError(absl::StrCat(
        "sparse table '", options_.name, "': a block of ", rows, " rows has ",
        block.slots.size(), " floats of slots, ", block.last_use.size(),
        " last uses and ", block.updates.size(), " counts"));
  }
  const Gate::Visit visit(&gate_);
  const Batch batch(block.ids, hash_, shard_bits_);
  RemoveInside(block.removed);
  const auto would_make = [&](const Shard& shard, size_t place) {
    return shard.rows().Find(block.ids[batch.position(place)],
                             batch.tag(place)) == kNoRow;
  };
  Reservation reservation(this);
  if (spill_ != nullptr) {
    auto reserved =
        ReserveFor(batch, Count::kIfShort, would_make, would_make, InTurn);
    if (!reserved.ok()) return reserved.status();
    reservation = *std::move(reserved);
  }
  bool failed = false;
  OnEach(batch, [&](Shard& shard, size_t place) {
    const uint32_t i = batch.position(place);
    Row* const row =
        shard.Put(block.ids[i], batch.tag(place), block.last_use[i],
                  reservation.OfShard(batch.shard(place)));
    failed |= row == nullptr && spill_ != nullptr;
    if (row == nullptr) return;
    row->updates = block.updates[i];
    float* const value = row->elements();
    std::copy_n(block.values.data() + i * dim, dim, value);
    std::copy_n(block.slots.data() + i * slots, slots, value + dim);
  });
  if (failed) {
    return Exhausted(options_, "memory failed while rows were restored");
  }
  return TierStatus();
}

RestoreLoss Table::FinishRestore() {
  RestoreLoss loss;
  for (const auto& part : parts_) {
    base::MutexLock lock(&part->mu);
    loss.Add(part->shard.FinishRestore());
  }
  return loss;
}

bool Table::Maintain(absl::Time now) {
  const uint32_t seconds = SecondsOf(now);
  bool more = false;
  for (const auto& part : parts_) {
    const Gate::Visit visit(&gate_);
    base::MutexLock lock(&part->mu);
    more |= part->shard.Maintain(seconds, kRowsPerMaintenance);
  }
  const bool sweeps =
      spill_ != nullptr && options_.time_to_live < absl::InfiniteDuration();
  return (sweeps && Sweep(seconds)) || more;
}

bool Table::Sweep(uint32_t now) {
  base::MutexLock lock(&sweep_mu_);
  if (sweep_ == nullptr) {
    if (now < next_sweep_) return false;
    sweep_ = spill_->Begin();
    // Schedules the next sweep early enough: an expired row stays for at most
    // an eighth of its time to live.
    next_sweep_ = SecondsOf(absl::FromUnixSeconds(now) + absl::Seconds(1) +
                            options_.time_to_live / 8);
  }
  for (size_t i = 0; i < kRowsPerSweep && sweep_ != nullptr; ++i) {
    const Row* const row = sweep_->Next();
    if (row == nullptr) {
      sweep_.reset();
      return false;
    }
    const uint64_t hash = hash_(row->id);
    Part& part = *parts_[Batch::ShardOf(hash, shard_bits_)];
    const Gate::Visit visit(&gate_);
    base::MutexLock part_lock(&part.mu);
    part.shard.ExpireSpilled(row->id, static_cast<uint32_t>(hash), now);
  }
  return sweep_ != nullptr;
}

absl::StatusOr<std::unique_ptr<Snapshot>> Table::BeginSnapshot(
    const SnapshotOptions& options) {
  base::MutexLock lock(&snapshot_mu_);
  const auto failed = [&](const char* why) {
    return absl::FailedPreconditionError(
        absl::StrCat("sparse table '", options_.name, "': ", why));
  };
  if (plan_ != nullptr) return failed("another snapshot is not finished");
  const uint32_t since = options.since.value_or(0);
  if (since >= epoch_) return failed("`since` is no epoch of a snapshot");
  auto plan = std::make_unique<SnapshotPlan>();
  plan->since = since;
  plan->at = epoch_;
  plan->copy_limit = options.copy_bytes;
  std::unique_ptr<Spill::Walk> spilled;
  gate_.Close();
  bool knows_removals = true;
  for (const auto& part : parts_) {
    base::MutexLock part_lock(&part->mu);
    knows_removals &= since == 0 || part->shard.removals().CompleteAfter(since);
  }
  for (const auto& part : parts_) {
    if (!knows_removals) break;
    base::MutexLock part_lock(&part->mu);
    part->shard.snapshot().Begin(plan.get());
  }
  if (knows_removals && spill_ != nullptr) spilled = spill_->Begin();
  gate_.Open();
  if (!knows_removals) {
    return failed("ids that were removed since then are forgotten; take all");
  }
  ++epoch_;
  plan_ = std::move(plan);
  return std::unique_ptr<Snapshot>(
      new Snapshot(this, plan_.get(), std::move(spilled)));
}

void Table::EndSnapshot() {
  base::MutexLock lock(&snapshot_mu_);
  for (const auto& part : parts_) {
    base::MutexLock part_lock(&part->mu);
    part->shard.snapshot().End();
  }
  plan_ = nullptr;
}

void Table::ForgetRemovals(uint32_t epoch) {
  for (const auto& part : parts_) {
    base::MutexLock lock(&part->mu);
    part->shard.removals().Forget(epoch);
  }
}

Counters Table::counters() const {
  Counters sum;
  for (const auto& part : parts_) {
    base::MutexLock lock(&part->mu);
    sum.Add(part->shard.counters());
  }
  sum.refused = refused_;
  return sum;
}

size_t Table::LongestRun() const {
  size_t longest = 0;
  for (const auto& part : parts_) {
    base::MutexLock lock(&part->mu);
    longest = std::max(longest, part->shard.rows().LongestRun());
  }
  return longest;
}

}  // namespace penstock::ps::sparse
