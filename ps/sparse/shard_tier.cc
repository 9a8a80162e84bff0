// Moves rows to the tier and back.

#include <algorithm>

#include "ps/sparse/shard.h"

namespace penstock::ps::sparse {

const Row* Shard::ReadOrFetch(uint64_t id, uint32_t tag, uint32_t now) {
  if (rows_.Find(id, tag) == kNoRow && FindSpilled(id, now)) {
    size_t reserved = 0;
    if (Fetch(tag, &reserved, /*must=*/false) == kNoRow) {
      ++counters_.hits;
      return &spilled_.found();
    }
  }
  return Read(id, tag, now);
}

bool Shard::SpillRow(uint32_t number) {
  const Row& row = *rows_.At(number);
  tier_is_full_ = !spilled_.Put(row);
  if (tier_is_full_) return false;
  // Copy the row for the snapshot, whose view of the tier lacks this row.
  snapshot_.Copy(number, row);
  Release(number);
  ++counters_.spilled;
  return true;
}

bool Shard::PromiseRoom(size_t rows) {
  const size_t in_memory = rows_.RowsWithin(memory_.budget());
  const size_t all = rows_.reserved() + rows;
  return spilled_.Promise(all - std::min(all, in_memory));
}

// Returns true if Swap() may run. During the swap, another shard may use the
// row's room in the tier. This shard then exceeds its limit, so Swap() may run
// only if the excess would be small.
bool Shard::CanSwap() const {
  return spilled_.has_tier() &&
         rows_.bytes() <= memory_.budget() + memory_.budget() / 8 &&
         spilled_.ErasedIsRoom();
}

bool Shard::UpdateNeedsRoom(uint64_t id, uint32_t tag, uint32_t now) {
  const uint32_t number = rows_.Find(id, tag);
  if (number != kNoRow) return Expired(*rows_.At(number), now);
  return !FindSpilled(id, now) && admission_.WouldAdmit(id, tag);
}

bool Shard::FindSpilled(uint64_t id, uint32_t now) {
  if (!spilled_.Find(id)) return false;
  if (!Expired(spilled_.found(), now)) return true;
  spilled_.Erase(id);
  AddRemoval(id);
  ++counters_.expired;
  return false;
}

uint32_t Shard::Fetch(uint32_t tag, size_t* reserved, bool must) {
  const Row& from = spilled_.found();
  const bool swaps = must && tier_is_full_;
  const uint32_t number =
      swaps ? Swap(tag) : NewRow(from.id, tag, reserved, must);
  if (number == kNoRow) return kNoRow;
  if (!swaps) spilled_.Erase(from.id);
  Row* const row = rows_.At(number);
  row->last_use = from.last_use;
  row->updates = from.updates;
  // Marks the row as changed after the snapshot, because the snapshot reads the
  // row from its own view of the tier.
  row->changed = snapshot_.is_in_progress() ? snapshot_.epoch() : from.changed;
  std::copy_n(from.elements(), options_.dim * (1 + options_.slots()),
              row->elements());
  ++counters_.fetched;
  return number;
}

// Moves the fetched row into memory, and another row to the tier. Does not use
// reserved room, because the tier has promised no room for the row that moves
// out.
uint32_t Shard::Swap(uint32_t tag) {
  const Row& row = spilled_.found();
  spilled_.Erase(row.id);
  if (!memory_.HasRoomFor(rows_.reserved() + 1, memory_.budget()) &&
      rows_.oldest() != kNoRow) {
    SpillRow(rows_.oldest());
    tier_is_full_ = true;
  }
  size_t reserved = 0;
  const uint32_t number = NewRow(row.id, tag, &reserved, /*must=*/true);
  if (number == kNoRow && !spilled_.Put(row)) {
    AddRemoval(row.id);
    ++counters_.over_budget;
  }
  return number;
}

void Shard::ExpireSpilled(uint64_t id, uint32_t tag, uint32_t now) {
  if (rows_.Find(id, tag) == kNoRow) FindSpilled(id, now);
}

}  // namespace penstock::ps::sparse
