#include "ps/sparse/snapshot.h"

#include "ps/sparse/table.h"

namespace penstock::ps::sparse {

Snapshot::~Snapshot() { table_->EndSnapshot(); }

absl::StatusOr<bool> Snapshot::Next(size_t limit, RowBlock* block) {
  block->Clear();
  limit = std::max<size_t>(limit, 1);
  while (!plan_->failed() && shard_ < table_->parts_.size()) {
    Table::Part& part = *table_->parts_[shard_];
    base::MutexLock lock(&part.mu);
    const bool more = part.shard.ReadSnapshot(limit, block);
    if (!more) ++shard_;
    if (!block->ids.empty() || !block->removed.empty()) break;
  }
  if (plan_->failed()) {
    block->Clear();
    return Exhausted(table_->options(), plan_->failure.load());
  }
  return !block->ids.empty() || !block->removed.empty();
}

}  // namespace penstock::ps::sparse
