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

// Returns a shard's budget for rows and index. The fixed parts are charged from
// the start, because they cannot wait for room later.
size_t LimitOfRows(const Options& options) {
  const size_t share = ShareOf(options.budget_bytes, options.shards);
  return share == kUnlimited ? share : share - FixedBytesOfShard(options);
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
      hash_(*hash),
      keeps_order_(options->KeepsOrder()),
      time_to_live_(WholeSeconds(options->time_to_live)),
      max_rows_(ShareOf(options->max_rows, options->shards)),
      byte_limit_(LimitOfRows(*options)),
      pool_(options->budget_bytes == 0 ? options->pool : nullptr),
      index_(options->memory),
      rows_(options->dim * (1 + options->slots()), options->memory),
      recency_(&rows_),
      admission_(options->min_count, options->candidates / options->shards,
                 hash, options->memory),
      removals_(options->max_removals / options->shards, options->memory),
      copies_(rows_.stride(), options->memory),
      spill_(spill),
      number_(number),
      fetched_(spill == nullptr ? 0 : spill->row_bytes()) {
  if (pool_ == nullptr) return;
  pool_->AddShard();
  CountBytes();
}

size_t Shard::bytes() const {
  return rows_.bytes() + index_.bytes() + admission_.bytes() +
         removals_.bytes() + fetched_.bytes();
}

void Shard::Prefetch(const uint64_t* hashes, size_t count) const {
  count = std::min(count, kMaxPrefetch);
  for (size_t i = 0; i < count; ++i) {
    index_.Prefetch(static_cast<uint32_t>(hashes[i]));
  }
  uint32_t numbers[kMaxPrefetch];
  for (size_t i = 0; i < count; ++i) {
    // Compares tags only: the tag nearly always identifies the row.
    numbers[i] = index_.Find(static_cast<uint32_t>(hashes[i]),
                             [](uint32_t row) { return true; });
    if (numbers[i] != kNoRow) rows_.Prefetch(numbers[i]);
  }
  if (!keeps_order_) return;
  for (size_t i = 0; i < count; ++i) {
    if (numbers[i] != kNoRow) recency_.Prefetch(numbers[i]);
  }
}

// Returns a row that has not expired. Removes an expired row immediately.
uint32_t Shard::FindAlive(uint64_t id, uint32_t tag, uint32_t now) {
  const uint32_t number = NumberOf(id, tag);
  if (number == kNoRow) return kNoRow;
  if (!Expired(*rows_.At(number), now)) return number;
  Evict(number, Reason::kExpired);
  return kNoRow;
}

const Row* Shard::Read(uint64_t id, uint32_t tag, uint32_t now) {
  const uint32_t number = NumberOf(id, tag);
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
    Preserve(number, row);
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
  if (!Admit(id, tag)) {
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
  const uint32_t number = NumberOf(id, tag);
  if (number != kNoRow) return Expired(*rows_.At(number), now);
  // Overestimates if the id is neither in the tier nor admitted.
  return spilled_rows_ > 0 || admission_.WouldAdmit(id, tag);
}

bool Shard::HasRoomFor(size_t rows, size_t byte_limit) {
  const bool has_room = GrowFor(rows, byte_limit);
  CountBytes();
  return has_room;
}

bool Shard::GrowFor(size_t rows, size_t byte_limit) {
  while (index_.limit() - index_.size() < rows) {
    // The old and the new index exist at the same time.
    const size_t bytes = rows_.bytes() + index_.bytes();
    if (bytes + index_.bytes_to_grow() > byte_limit) return false;
    // The rows that the index finds must fit next to it. More rows may be
    // reserved than memory holds at once, and an index never shrinks.
    const size_t left = byte_limit - index_.bytes_to_grow();
    if (rows_.RowsIn(left) <= index_.limit() || !index_.Grow()) return false;
  }
  while (rows_.available() < rows) {
    if (rows_.AddRoom(byte_limit - std::min(index_.bytes(), byte_limit))) {
      continue;
    }
    if (!rows_.draining()) return false;
    rows_.StopDraining();
  }
  return true;
}

bool Shard::Reserve(size_t rows) {
  if (rows == 0) return true;
  while (!HasRoomFor(std::min(rows_.reserved() + rows, below_max()),
                     ByteLimit())) {
    if (!may_evict() || !keeps_order_) return false;
    // Moves rows to the tier now: later the tier may be full.
    if (spill_ != nullptr && EvictOldest(Reason::kBudget)) continue;
    if (spill_ != nullptr && rows_.size() > 0) return false;
    // Room for one row suffices, because reserved rows will evict each other.
    if (rows_.size() == 0 && !HasRoomFor(1, ByteLimit())) return false;
    if (spill_ != nullptr && !PromiseRoom(rows)) return false;
    break;
  }
  rows_.Reserve(rows);
  return true;
}

void Shard::Unreserve(size_t rows) {
  rows_.Unreserve(rows);
  if (promised_ <= rows_.reserved()) return;
  spill_->Unpromise(promised_ - rows_.reserved());
  promised_ = rows_.reserved();
}

bool Shard::EvictOldest(Reason reason) {
  if (!keeps_order_ || recency_.oldest() == kNoRow) return false;
  if (spill_ != nullptr && reason == Reason::kBudget) {
    return SpillRow(recency_.oldest());
  }
  Evict(recency_.oldest(), reason);
  return true;
}

// Keeps the room that others reserved, unless each new row can evict one.
bool Shard::HasRoomForOne(bool is_reserved, bool must) {
  const size_t rows = is_reserved || may_evict()
                          ? 1
                          : std::min(rows_.reserved() + 1, below_max());
  while (!HasRoomFor(rows, ByteLimit())) {
    if (!is_reserved && !may_evict()) return false;
    if (EvictOldest(Reason::kBudget)) continue;
    return spill_ != nullptr && must && HasRoomFor(rows, kUnlimited);
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
  return TakeRow(id, tag);
}

uint32_t Shard::TakeRow(uint64_t id, uint32_t tag) {
  const uint32_t number = rows_.Take();
  rows_.At(number)->id = id;
  index_.Insert(tag, number);
  if (keeps_order_) recency_.Add(number);
  return number;
}

uint32_t Shard::Make(uint64_t id, uint32_t tag, uint32_t now, size_t* reserved,
                     bool must) {
  const uint32_t number = NewRow(id, tag, reserved, must);
  if (number == kNoRow) return kNoRow;
  Row* const row = rows_.At(number);
  row->last_use = now;
  row->changed = epoch_;
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
  Preserve(number, row);
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
  index_.Erase(static_cast<uint32_t>(hash_(rows_.At(number)->id)), number);
  if (keeps_order_) recency_.Remove(number);
  rows_.Release(number);
}

bool Shard::Remove(uint64_t id, uint32_t tag) {
  if (restore_order_ != nullptr) restore_order_->RemoveLost(id);
  const uint32_t number = NumberOf(id, tag);
  if (number == kNoRow) {
    if (!FindSpilled(id, /*now=*/0)) return false;
    EraseSpilled(id);
    AddRemoval(id);
    ++counters_.removed;
    return true;
  }
  Evict(number, Reason::kRemoved);
  return true;
}

bool Shard::Maintain(uint32_t now, size_t limit) {
  size_t left = limit;
  while (keeps_order_ && left > 0 && recency_.oldest() != kNoRow &&
         Expired(*rows_.At(recency_.oldest()), now)) {
    EvictOldest(Reason::kExpired);
    --left;
  }
  const bool more_to_move = Compact(limit);
  CountBytes();
  return left == 0 || more_to_move;
}

// Moves up to `limit` rows, to free pages. Does nothing while a snapshot or a
// restore is in progress, because they find rows by number.
bool Shard::Compact(size_t limit) {
  if (plan_ != nullptr && cursor_ != kNoRow) return false;
  if (restore_order_ != nullptr) return false;
  for (; limit > 0; --limit) {
    if (!rows_.draining()) {
      if (!rows_.Drain()) return false;
      drain_from_ = 0;
    }
    const uint32_t number = rows_.NextToMove(&drain_from_);
    if (number == kNoRow || rows_.available() <= rows_.reserved()) {
      rows_.StopDraining();
      return false;
    }
    Move(number);
  }
  return true;
}

void Shard::Move(uint32_t number) {
  const uint32_t to = rows_.Take();
  Row* const row = rows_.At(number);
  std::memcpy(static_cast<void*>(rows_.At(to)), row, rows_.stride());
  index_.Replace(static_cast<uint32_t>(hash_(row->id)), number, to);
  if (keeps_order_) recency_.Moved(number, to);
  rows_.Release(number);
}

Counters Shard::counters() const {
  Counters counters = counters_;
  counters.rows = rows_.size() + spilled_rows_;
  counters.spilled_rows = spilled_rows_;
  counters.reserved = rows_.reserved();
  counters.bytes = bytes();
  return counters;
}

}  // namespace penstock::ps::sparse
