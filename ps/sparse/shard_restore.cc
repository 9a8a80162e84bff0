// Puts the rows of a restore into a shard.

#include <algorithm>
#include <memory>
#include <vector>

#include "ps/sparse/shard.h"

namespace penstock::ps::sparse {

Row* Shard::Put(uint64_t id, uint32_t tag, uint32_t last_use,
                size_t* reserved) {
  uint32_t number = NumberOf(id, tag);
  if (number != kNoRow) {
    Preserve(number, rows_.At(number));
    if (keeps_order_) recency_.Use(number);
    if (restore_order_ != nullptr) restore_order_->Remove(number);
  } else if (spill_ != nullptr) {
    if (FindSpilled(id, /*now=*/0)) EraseSpilled(id);
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
    if (!is_above_max && HasRoomFor(rows_.reserved() + 1, ByteLimit())) break;
    if (restore_order_ == nullptr) {
      restore_order_ = std::make_unique<RestoreOrder>(&rows_);
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
  const uint32_t number = TakeRow(id, tag);
  rows_.At(number)->changed = epoch_;
  ++counters_.created;
  return number;
}

RestoreLoss Shard::FinishRestore() {
  const RestoreLoss loss =
      restore_order_ == nullptr ? RestoreLoss() : restore_order_->loss();
  restore_order_.reset();
  Sort();
  return loss;
}

void Shard::Sort() {
  if (!keeps_order_) return;
  std::vector<uint32_t> numbers;
  numbers.reserve(rows_.size());
  for (uint32_t i = recency_.oldest(); i != kNoRow; i = rows_.At(i)->newer) {
    numbers.push_back(i);
  }
  std::stable_sort(numbers.begin(), numbers.end(), [&](uint32_t a, uint32_t b) {
    return rows_.At(a)->last_use < rows_.At(b)->last_use;
  });
  recency_.Clear();
  for (const uint32_t number : numbers) recency_.Add(number);
}

}  // namespace penstock::ps::sparse
