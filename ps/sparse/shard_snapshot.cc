#include "ps/sparse/shard_snapshot.h"

namespace penstock::ps::sparse {
namespace {

// Limits how many rows a call checks for each row that it may return, so that
// the shard's lock is held only briefly.
constexpr size_t kLooksPerRow = 16;

}  // namespace

ShardSnapshot::ShardSnapshot(const Options* options, const ShardRows* rows,
                             const Removals* removals)
    : options_(*options),
      rows_(*rows),
      removals_(*removals),
      copies_(rows->store().stride(), options->memory) {}

void ShardSnapshot::Begin(SnapshotPlan* plan) {
  epoch_ = plan->at + 1;
  plan_ = plan;
  cursor_ = 0;
  removed_taken_ = false;
}

bool ShardSnapshot::Read(size_t limit, RowBlock* block) {
  if (!removed_taken_ && plan_->since > 0) {
    if (!removals_.CompleteAfter(plan_->since)) {
      plan_->Fail("more ids were removed than max_removals has room for");
    }
    removals_.Append(plan_->since, plan_->at, &block->removed);
  }
  removed_taken_ = true;
  if (plan_->failed()) return false;
  size_t taken = 0;
  for (; taken < limit && copies_.Last() != nullptr; ++taken) {
    Append(options_, *copies_.Last(), block);
    copies_.Pop(plan_);
  }
  size_t looks = limit * kLooksPerRow;
  while (taken < limit && looks > 0 && cursor_ != kNoRow) {
    const uint32_t number = rows_.store().NextUsed(cursor_, &looks, &cursor_);
    if (number == kNoRow || !plan_->Has(*rows_.At(number))) continue;
    Append(options_, *rows_.At(number), block);
    ++taken;
  }
  return cursor_ != kNoRow || copies_.Last() != nullptr;
}

void ShardSnapshot::End() {
  copies_.Clear(plan_);
  plan_ = nullptr;
  cursor_ = kNoRow;
}

void Append(const Options& options, const Row& row, RowBlock* block) {
  const float* const slots = row.elements() + options.dim;
  block->ids.push_back(row.id);
  block->values.insert(block->values.end(), row.elements(), slots);
  block->slots.insert(block->slots.end(), slots,
                      slots + options.dim * options.slots());
  block->last_use.push_back(row.last_use);
  block->updates.push_back(row.updates);
}

}  // namespace penstock::ps::sparse
