// Moves rows to the tier and back.

#include <algorithm>

#include "ps/sparse/shard.h"

namespace penstock::ps::sparse {

const Row* Shard::ReadOrFetch(uint64_t id, uint32_t tag, uint32_t now) {
  if (NumberOf(id, tag) == kNoRow && FindSpilled(id, now)) {
    size_t reserved = 0;
    if (Fetch(tag, &reserved, /*must=*/false) == kNoRow) {
      ++counters_.hits;
      return fetched_.row();
    }
  }
  return Read(id, tag, now);
}

bool Shard::SpillRow(uint32_t number) {
  const Row& row = *rows_.At(number);
  tier_is_full_ = !spill_->Put(number_, row);
  if (tier_is_full_) return false;
  // The snapshot's view of the tier lacks this row.
  CopyForSnapshot(number, row);
  Release(number);
  ++spilled_rows_;
  ++counters_.spilled;
  return true;
}

bool Shard::PromiseRoom(size_t rows) {
  const size_t in_memory = std::min(
      index_.limit(),
      rows_.RowsIn(byte_limit_ - std::min(index_.bytes(), byte_limit_)));
  const size_t all = rows_.reserved() + rows;
  if (all <= in_memory + promised_) return true;
  const size_t more = all - in_memory - promised_;
  if (!spill_->Promise(more)) return false;
  promised_ += more;
  return true;
}

// Returns true if Swap() may run. During the swap, another shard may take the
// row's room in the tier. This shard then exceeds its limit. The condition
// keeps the excess small.
bool Shard::CanSwap() const {
  return spill_ != nullptr &&
         rows_.bytes() + index_.bytes() <= byte_limit_ + byte_limit_ / 8 &&
         spill_->ErasedIsRoom();
}

bool Shard::UpdateNeedsRoom(uint64_t id, uint32_t tag, uint32_t now) {
  const uint32_t number = NumberOf(id, tag);
  if (number != kNoRow) return Expired(*rows_.At(number), now);
  return !FindSpilled(id, now) && admission_.WouldAdmit(id, tag);
}

bool Shard::FindSpilled(uint64_t id, uint32_t now) {
  if (spilled_rows_ == 0 || !spill_->Get(number_, id, fetched_.row())) {
    return false;
  }
  if (!Expired(*fetched_.row(), now)) return true;
  EraseSpilled(id);
  AddRemoval(id);
  ++counters_.expired;
  return false;
}

void Shard::EraseSpilled(uint64_t id) {
  spill_->Erase(number_, id);
  --spilled_rows_;
}

uint32_t Shard::Fetch(uint32_t tag, size_t* reserved, bool must) {
  if (must && tier_is_full_) return Swap(tag);
  const uint32_t number = NewRow(fetched_.row()->id, tag, reserved, must);
  if (number == kNoRow) return kNoRow;
  EraseSpilled(fetched_.row()->id);
  TakeFetched(number);
  return number;
}

// Brings the fetched row into memory, in place of another row. Leaves reserved
// room alone: no room in the tier was promised for this row.
uint32_t Shard::Swap(uint32_t tag) {
  const Row& row = *fetched_.row();
  EraseSpilled(row.id);
  if (!HasRoomFor(rows_.reserved() + 1, byte_limit_) &&
      recency_.oldest() != kNoRow) {
    SpillRow(recency_.oldest());
    tier_is_full_ = true;
  }
  size_t reserved = 0;
  const uint32_t number = NewRow(row.id, tag, &reserved, /*must=*/true);
  if (number != kNoRow) {
    TakeFetched(number);
  } else if (spill_->Put(number_, row)) {
    ++spilled_rows_;
  } else {
    AddRemoval(row.id);
    ++counters_.over_budget;
  }
  return number;
}

// Marks the row as changed after the snapshot, which reads the row from its
// view of the tier.
void Shard::TakeFetched(uint32_t number) {
  const Row& from = *fetched_.row();
  Row* const row = rows_.At(number);
  row->last_use = from.last_use;
  row->updates = from.updates;
  row->changed = plan_ != nullptr ? epoch_ : from.changed;
  std::copy_n(from.elements(), options_.dim * (1 + options_.slots()),
              row->elements());
  ++counters_.fetched;
}

void Shard::ExpireSpilled(uint64_t id, uint32_t tag, uint32_t now) {
  if (NumberOf(id, tag) == kNoRow) FindSpilled(id, now);
}

}  // namespace penstock::ps::sparse
