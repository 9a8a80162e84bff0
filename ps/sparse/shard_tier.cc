// How rows move to the tier and back.

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
  if (!spill_->Put(number_, row)) return false;
  // The tier's rows of this point in time are without it.
  CopyForSnapshot(number, row);
  Release(number);
  ++spilled_rows_;
  ++counters_.spilled;
  return true;
}

bool Shard::FindSpilled(uint64_t id, uint32_t now) {
  if (spilled_rows_ == 0 || !spill_->Get(number_, id, fetched_.row())) {
    return false;
  }
  if (!Expired(*fetched_.row(), now)) return true;
  EraseSpilled(id);
  removals_.Add(id, epoch_);
  ++counters_.expired;
  return false;
}

void Shard::EraseSpilled(uint64_t id) {
  spill_->Erase(number_, id);
  --spilled_rows_;
}

// A snapshot has the row from the tier, where it was when that began. So it has
// to look like one that came later.
uint32_t Shard::Fetch(uint32_t tag, size_t* reserved, bool must) {
  const Row& from = *fetched_.row();
  const uint32_t number = NewRow(from.id, tag, reserved, must);
  if (number == kNoRow) return kNoRow;
  EraseSpilled(from.id);
  Row* const row = rows_.At(number);
  row->last_use = from.last_use;
  row->updates = from.updates;
  row->changed = plan_ != nullptr ? epoch_ : from.changed;
  std::copy_n(from.elements(), options_.dim * (1 + options_.slots()),
              row->elements());
  ++counters_.fetched;
  return number;
}

void Shard::ExpireSpilled(uint64_t id, uint32_t tag, uint32_t now) {
  if (NumberOf(id, tag) == kNoRow) FindSpilled(id, now);
}

}  // namespace penstock::ps::sparse
