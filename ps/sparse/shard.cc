#include "ps/sparse/shard.h"

#include <limits>

namespace penstock::ps::sparse {
namespace {

uint32_t WholeSeconds(absl::Duration duration) {
  constexpr uint32_t kEver = std::numeric_limits<uint32_t>::max();
  const int64_t seconds = absl::ToInt64Seconds(duration);
  return seconds > kEver ? kEver : static_cast<uint32_t>(seconds);
}

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

size_t ShareOf(size_t limit, size_t shards) {
  return limit == 0 ? kUnlimited : limit / shards;
}

}  // namespace

void Counters::Add(const Counters& other) {
  rows += other.rows;
  spilled_rows += other.spilled_rows;
  reserved += other.reserved;
  bytes += other.bytes;
  hits += other.hits;
  misses += other.misses;
  created += other.created;
  not_admitted += other.not_admitted;
  refused += other.refused;
  dropped += other.dropped;
  expired += other.expired;
  over_capacity += other.over_capacity;
  over_budget += other.over_budget;
  removed += other.removed;
  spilled += other.spilled;
  fetched += other.fetched;
}

Shard::Shard(const Options* options, const InitialValue* initial,
             const HashKey* hash, Spill* spill, uint32_t number)
    : options_(*options),
      initial_(*initial),
      time_to_live_(WholeSeconds(options->time_to_live)),
      max_rows_(ShareOf(options->max_rows, options->shards)),
      rows_(options, hash),
      admission_(options->min_count, options->candidates / options->shards,
                 hash, options->memory),
      removals_(options->max_removals / options->shards, options->memory),
      spilled_(spill, number),
      memory_(*options, spilled_.buffer_bytes(), &rows_, &admission_,
              &removals_),
      snapshot_(options, &rows_, &removals_) {}

// Returns the row of an id, unless it has expired. Removes an expired row
// immediately.
uint32_t Shard::FindAlive(uint64_t id, uint32_t tag, uint32_t now) {
  const uint32_t number = rows_.Find(id, tag);
  if (number == kNoRow) return kNoRow;
  if (!Expired(*rows_.At(number), now)) return number;
  Evict(number, Reason::kExpired);
  return kNoRow;
}

const Row* Shard::Read(uint64_t id, uint32_t tag, uint32_t now) {
  const uint32_t number = rows_.Find(id, tag);
  if (number == kNoRow || Expired(*rows_.At(number), now)) {
    ++counters_.misses;
    return nullptr;
  }
  ++counters_.hits;
  Row* const row = rows_.At(number);
  Use(number, row, now);
  return row;
}

const Row* Shard::ReadOrMake(uint64_t id, uint32_t tag, uint32_t now) {
  const Row* const row = ReadOrFetch(id, tag, now);
  if (row != nullptr) return row;
  FindAlive(id, tag, now);
  size_t reserved = 0;
  const uint32_t number = Make(id, tag, now, &reserved, /*must=*/false);
  return number == kNoRow ? nullptr : rows_.At(number);
}

Row* Shard::Update(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
                   bool* dropped) {
  uint32_t number = FindAlive(id, tag, now);
  const bool is_spilled = number == kNoRow && FindSpilled(id, now);
  if (is_spilled) number = Fetch(tag, reserved, /*must=*/true);
  if (number != kNoRow) {
    ++counters_.hits;
    Row* const row = rows_.At(number);
    snapshot_.Preserve(number, row);
    Use(number, row, now);
    row->updates += row->updates < std::numeric_limits<uint32_t>::max();
    return row;
  }
  if (is_spilled) {
    ++counters_.dropped;
    *dropped = true;
    return nullptr;
  }
  ++counters_.misses;
  if (!memory_.Admit(id, tag)) {
    ++counters_.not_admitted;
    return nullptr;
  }
  number = Make(id, tag, now, reserved, /*must=*/true);
  if (number == kNoRow) {
    *dropped = !admission_.Return(id, tag);
    ++(*dropped ? counters_.dropped : counters_.not_admitted);
    return nullptr;
  }
  rows_.At(number)->updates = 1;
  return rows_.At(number);
}

bool Shard::UpdateWouldMake(uint64_t id, uint32_t tag, uint32_t now) const {
  const uint32_t number = rows_.Find(id, tag);
  if (number != kNoRow) return Expired(*rows_.At(number), now);
  // Does not search the tier, so this may also be true for an id that gets no
  // row.
  return spilled_.size() > 0 || admission_.WouldAdmit(id, tag);
}

bool Shard::Reserve(size_t rows) {
  if (rows == 0) return true;
  while (!memory_.HasRoomFor(std::min(rows_.reserved() + rows, below_max()),
                             memory_.Limit())) {
    if (!may_evict() || !rows_.keeps_order()) return false;
    // Move rows to the tier now, because the tier may be full later.
    if (spilled_.has_tier() && EvictOldest(Reason::kBudget)) continue;
    if (spilled_.has_tier() && rows_.size() > 0) return false;
    // Requires room for one row only: reserved rows can evict each other.
    if (rows_.size() == 0 && !memory_.HasRoomFor(1, memory_.Limit()))
      return false;
    if (spilled_.has_tier() && !PromiseRoom(rows)) return false;
    break;
  }
  rows_.Reserve(rows);
  return true;
}

void Shard::Unreserve(size_t rows) {
  rows_.Unreserve(rows);
  spilled_.LimitPromise(rows_.reserved());
}

bool Shard::EvictOldest(Reason reason) {
  if (!rows_.keeps_order() || rows_.oldest() == kNoRow) return false;
  if (spilled_.has_tier() && reason == Reason::kBudget) {
    return SpillRow(rows_.oldest());
  }
  Evict(rows_.oldest(), reason);
  return true;
}

// Returns true if there is room for one more row. Leaves the room that others
// have reserved, unless each new row can evict a row.
bool Shard::HasRoomForOne(bool is_reserved, bool must) {
  const size_t rows = is_reserved || may_evict()
                          ? 1
                          : std::min(rows_.reserved() + 1, below_max());
  while (!memory_.HasRoomFor(rows, memory_.Limit())) {
    if (!is_reserved && !may_evict()) return false;
    if (EvictOldest(Reason::kBudget)) continue;
    return spilled_.has_tier() && must && memory_.HasRoomFor(rows, kUnlimited);
  }
  return true;
}

uint32_t Shard::NewRow(uint64_t id, uint32_t tag, size_t* reserved, bool must) {
  if (rows_.size() >= max_rows_) EvictOldest(Reason::kCapacity);
  const bool is_reserved = *reserved > 0;
  if (!HasRoomForOne(is_reserved, must)) return kNoRow;
  if (is_reserved) {
    --*reserved;
    Unreserve(1);
  }
  return rows_.Take(id, tag);
}

uint32_t Shard::Make(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
                     bool must) {
  const uint32_t number = NewRow(id, tag, reserved, must);
  if (number == kNoRow) return kNoRow;
  Row* const row = rows_.At(number);
  row->last_use = now;
  row->changed = snapshot_.epoch();
  float* elements = row->elements();
  initial_.Fill(id, options_.dim, elements);
  for (const float first : options_.initial_slots) {
    elements += options_.dim;
    std::fill_n(elements, options_.dim, first);
  }
  ++counters_.created;
  return number;
}

void Shard::Evict(uint32_t number, Reason reason) {
  Row* const row = rows_.At(number);
  snapshot_.Preserve(number, row);
  AddRemoval(row->id);
  Release(number);
  switch (reason) {
    case Reason::kExpired:
      ++counters_.expired;
      break;
    case Reason::kCapacity:
      ++counters_.over_capacity;
      break;
    case Reason::kBudget:
      ++counters_.over_budget;
      break;
    case Reason::kRemoved:
      ++counters_.removed;
      break;
  }
}

void Shard::Release(uint32_t number) {
  if (restore_order_ != nullptr) restore_order_->Remove(number);
  rows_.Release(number);
}

bool Shard::Remove(uint64_t id, uint32_t tag) {
  if (restore_order_ != nullptr) restore_order_->RemoveLost(id);
  const uint32_t number = rows_.Find(id, tag);
  if (number == kNoRow) {
    if (!FindSpilled(id, /*now=*/0)) return false;
    spilled_.Erase(id);
    AddRemoval(id);
    ++counters_.removed;
    return true;
  }
  Evict(number, Reason::kRemoved);
  return true;
}

bool Shard::Maintain(uint32_t now, size_t limit) {
  size_t left = limit;
  while (rows_.keeps_order() && left > 0 && rows_.oldest() != kNoRow &&
         Expired(*rows_.At(rows_.oldest()), now)) {
    EvictOldest(Reason::kExpired);
    --left;
  }
  const bool more_to_move = Compact(limit);
  memory_.Count();
  return left == 0 || more_to_move;
}

// Moves up to `limit` rows, to free pages. Does nothing while a snapshot or a
// restore is in progress, because both find rows by number.
bool Shard::Compact(size_t limit) {
  if (snapshot_.needs_numbers() || restore_order_ != nullptr) return false;
  return rows_.Compact(limit);
}

Counters Shard::counters() const {
  Counters counters = counters_;
  counters.rows = rows_.size() + spilled_.size();
  counters.spilled_rows = spilled_.size();
  counters.reserved = rows_.reserved();
  counters.bytes = memory_.bytes();
  return counters;
}

}  // namespace penstock::ps::sparse
