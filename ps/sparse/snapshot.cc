#include "ps/sparse/snapshot.h"

#include "ps/sparse/table.h"

namespace penstock::ps::sparse {
namespace {

// Limits how many rows of the tier a call checks for each row that it may
// return.
constexpr size_t kLooksPerRow = 16;

}  // namespace

Snapshot::~Snapshot() { table_->EndSnapshot(); }

absl::StatusOr<bool> Snapshot::Next(size_t limit, RowBlock* block) {
  block->Clear();
  limit = std::max<size_t>(limit, 1);
  while (!plan_->failed() && shard_ < table_->parts_.size()) {
    Table::Part& part = *table_->parts_[shard_];
    base::MutexLock lock(&part.mu);
    const bool more = part.shard.snapshot().Read(limit, block);
    if (!more) ++shard_;
    if (!block->ids.empty() || !block->removed.empty()) break;
  }
  // Read rows in memory first, because changed rows are copied until they have
  // been read.
  if (block->ids.empty() && block->removed.empty()) AddSpilled(limit, block);
  absl::Status tier = table_->TierStatus();
  if (!tier.ok()) {
    block->Clear();
    return tier;
  }
  if (plan_->failed()) {
    block->Clear();
    return Exhausted(table_->options(), plan_->failure.load());
  }
  return spilled_ != nullptr || !block->ids.empty() || !block->removed.empty();
}

void Snapshot::AddSpilled(size_t limit, RowBlock* block) {
  size_t looks = limit * kLooksPerRow;
  for (; spilled_ != nullptr && block->ids.size() < limit && looks > 0;
       --looks) {
    const Row* const row = spilled_->Next();
    if (row == nullptr) {
      spilled_.reset();
    } else if (plan_->Has(*row)) {
      Append(table_->options(), *row, block);
    }
  }
}

}  // namespace penstock::ps::sparse
