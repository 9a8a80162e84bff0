#include "ps/sparse/shard_memory.h"

#include <algorithm>
#include <limits>

namespace penstock::ps::sparse {
namespace {

constexpr size_t kUnlimited = std::numeric_limits<size_t>::max();

size_t BudgetOfRows(const Options& options) {
  if (options.budget_bytes == 0) return kUnlimited;
  return options.budget_bytes / options.shards - FixedBytesOfShard(options);
}

}  // namespace

ShardMemory::ShardMemory(const Options& options, size_t buffer_bytes,
                         ShardRows* rows, Admission* admission,
                         Removals* removals)
    : budget_(BudgetOfRows(options)),
      buffer_bytes_(buffer_bytes),
      rows_(rows),
      admission_(admission),
      removals_(removals),
      pool_(options.budget_bytes == 0 ? options.pool : nullptr) {
  if (pool_ == nullptr) return;
  pool_->AddShard();
  Count();
}

ShardMemory::~ShardMemory() {
  if (pool_ == nullptr) return;
  pool_->Count(counted_, 0);
  pool_->RemoveShard();
}

size_t ShardMemory::bytes() const {
  return rows_->bytes() + admission_->bytes() + removals_->bytes() +
         buffer_bytes_;
}

size_t ShardMemory::Limit() {
  if (pool_ == nullptr) return budget_;
  Count();
  return rows_->bytes() + pool_->left();
}

void ShardMemory::Count() {
  if (pool_ == nullptr) return;
  const size_t now = bytes() + removals_->untouched_bytes();
  pool_->Count(counted_, now);
  counted_ = now;
}

bool ShardMemory::HasRoomFor(size_t rows, size_t byte_limit) {
  const bool has_room = rows_->GrowFor(rows, byte_limit);
  Count();
  return has_room;
}

bool ShardMemory::Admit(uint64_t id, uint32_t tag) {
  if (pool_ == nullptr) return admission_->Admit(id, tag, kUnlimited);
  const size_t before = admission_->bytes();
  const bool is_admitted = admission_->Admit(
      id, tag, std::min(pool_->list_share(), before + pool_->left()));
  if (admission_->bytes() != before) Count();
  return is_admitted;
}

void ShardMemory::AddRemoval(uint64_t id, uint32_t epoch) {
  if (pool_ == nullptr) return removals_->Add(id, epoch, kUnlimited);
  const size_t share = pool_->list_share();
  const bool was_allocated = removals_->is_allocated();
  removals_->Add(id, epoch, pool_->left() < share ? 0 : share);
  if (!was_allocated) Count();
}

}  // namespace penstock::ps::sparse
