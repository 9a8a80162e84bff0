// A shard's use of the memory that tables share.

#include <algorithm>
#include <limits>

#include "ps/sparse/shard.h"

namespace penstock::ps::sparse {

Shard::~Shard() {
  if (pool_ == nullptr) return;
  pool_->Count(counted_, 0);
  pool_->RemoveShard();
}

size_t Shard::ByteLimit() {
  if (pool_ == nullptr) return byte_limit_;
  CountBytes();
  return rows_.bytes() + index_.bytes() + pool_->left();
}

void Shard::CountBytes() {
  if (pool_ == nullptr) return;
  const size_t now = bytes() + removals_.untouched_bytes();
  pool_->Count(counted_, now);
  counted_ = now;
}

// Counts a push of `id`, and admits it as Admission does. A table with a budget
// has paid for all its candidates and removals.
bool Shard::Admit(uint64_t id, uint32_t tag) {
  if (pool_ == nullptr) {
    return admission_.Admit(id, tag, std::numeric_limits<size_t>::max());
  }
  const size_t before = admission_.bytes();
  const bool is_admitted = admission_.Admit(
      id, tag, std::min(pool_->list_share(), before + pool_->left()));
  if (admission_.bytes() != before) CountBytes();
  return is_admitted;
}

void Shard::AddRemoval(uint64_t id) {
  if (pool_ == nullptr) {
    return removals_.Add(id, epoch_, std::numeric_limits<size_t>::max());
  }
  const size_t share = pool_->list_share();
  const bool was_allocated = removals_.is_allocated();
  removals_.Add(id, epoch_, pool_->left() < share ? 0 : share);
  if (!was_allocated) CountBytes();
}

}  // namespace penstock::ps::sparse
