// A shard's use of the memory that tables share.

#include "ps/sparse/shard.h"

namespace penstock::ps::sparse {

Shard::~Shard() {
  if (pool_ != nullptr) pool_->Count(counted_, 0);
}

size_t Shard::ByteLimit() {
  if (pool_ == nullptr) return byte_limit_;
  CountBytes();
  return rows_.bytes() + index_.bytes() + pool_->left();
}

void Shard::CountBytes() {
  if (pool_ == nullptr) return;
  const size_t now = bytes();
  pool_->Count(counted_, now);
  counted_ = now;
}

}  // namespace penstock::ps::sparse
