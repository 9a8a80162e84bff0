// Puts the rows of a restore into a shard.

#include <memory>

#include "ps/sparse/shard.h"

namespace penstock::ps::sparse {

Row* Shard::Put(uint64_t id, uint32_t tag, uint32_t last_use,
                size_t* reserved) {
  uint32_t number = rows_.Find(id, tag);
  if (number != kNoRow) {
    snapshot_.Preserve(number, rows_.At(number));
    rows_.MakeNewest(number);
    if (restore_order_ != nullptr) restore_order_->Remove(number);
  } else if (spilled_.has_tier()) {
    if (FindSpilled(id, /*now=*/0)) spilled_.Erase(id);
    number = Make(id, tag, last_use, reserved, /*must=*/true);
  } else {
    number = NewRestored(id, tag, last_use);
  }
  if (number == kNoRow) return nullptr;
  rows_.At(number)->last_use = last_use;
  if (restore_order_ != nullptr) restore_order_->Add(number);
  return rows_.At(number);
}

uint32_t Shard::NewRestored(uint64_t id, uint32_t tag, uint32_t last_use) {
  while (true) {
    const bool is_above_max = rows_.size() >= max_rows_;
    if (!is_above_max &&
        memory_.HasRoomFor(rows_.reserved() + 1, memory_.Limit())) {
      break;
    }
    if (restore_order_ == nullptr) {
      restore_order_ = std::make_unique<RestoreOrder>(&rows_.store());
    }
    const uint32_t oldest = restore_order_->oldest();
    if (oldest == kNoRow || rows_.At(oldest)->last_use >= last_use) {
      restore_order_->AddLost(id, !is_above_max);
      return kNoRow;
    }
    restore_order_->AddLost(rows_.At(oldest)->id, !is_above_max);
    Evict(oldest, is_above_max ? Reason::kCapacity : Reason::kBudget);
  }
  if (restore_order_ != nullptr) restore_order_->RemoveLost(id);
  const uint32_t number = rows_.Take(id, tag);
  rows_.At(number)->changed = snapshot_.epoch();
  ++counters_.created;
  return number;
}

RestoreLoss Shard::FinishRestore() {
  const RestoreLoss loss =
      restore_order_ == nullptr ? RestoreLoss() : restore_order_->loss();
  restore_order_.reset();
  rows_.SortByLastUse();
  return loss;
}

}  // namespace penstock::ps::sparse
