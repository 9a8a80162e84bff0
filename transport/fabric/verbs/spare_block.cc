#include "transport/fabric/verbs/spare_block.h"

#include <utility>

#include "absl/memory/memory.h"
#include "transport/base/steady_time.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The heap memory of a spare block. This object owns the memory, so that the
// pages stay until it is freed.
struct SpareBlock::Stable {
  memory::Block block;
  // The promise of stable memory, which ends before the memory is freed. Null
  // if the memory is already declared as stable.
  std::unique_ptr<memory::StableMemory> promise;
};

std::shared_ptr<SpareBlock> SpareBlock::Create(uint64_t limit,
                                               absl::Duration idle) {
  return absl::WrapUnique(new SpareBlock(limit, idle));
}

absl::StatusOr<memory::Block> SpareBlock::Allocate(size_t size) {
  std::shared_ptr<Stable> stable = Take(size);
  if (stable == nullptr) {
    absl::StatusOr<memory::Block> fresh = memory::AllocateBlock(size);
    if (!fresh.ok()) return fresh;
    stable = std::make_shared<Stable>();
    stable->block = *std::move(fresh);
    auto promise =
        memory::StableMemory::Declare(stable->block.data.get(), size);
    if (promise.ok()) stable->promise = *std::move(promise);
  }
  uint8_t* const data = stable->block.data.get();
  const std::weak_ptr<SpareBlock> weak = shared_from_this();
  auto give_back = [weak, stable](uint8_t*) mutable {
    std::shared_ptr<SpareBlock> self = weak.lock();
    if (self != nullptr) self->GiveBack(std::move(stable));
  };
  memory::Block block;
  block.data = std::shared_ptr<uint8_t>(data, std::move(give_back));
  block.size = size;
  return block;
}

std::shared_ptr<SpareBlock::Stable> SpareBlock::Take(size_t size) {
  base::MutexLock lock(&mu_);
  if (kept_ == nullptr || kept_->block.size < size ||
      kept_->block.size / 2 > size) {
    return nullptr;
  }
  return std::exchange(kept_, nullptr);
}

// Keeps or frees the block. Frees memory only after unlocking, because freeing
// takes milliseconds.
void SpareBlock::GiveBack(std::shared_ptr<Stable> block) {
  if (block->block.size > limit_) return;
  base::MutexLock lock(&mu_);
  if (kept_ != nullptr && kept_->block.size > block->block.size) return;
  kept_.swap(block);
  kept_since_ = base::SteadyNow();
}

void SpareBlock::OnTick(absl::Time now) {
  std::shared_ptr<Stable> idle;  // freed after the lock
  base::MutexLock lock(&mu_);
  if (kept_ != nullptr && now - kept_since_ >= idle_) idle.swap(kept_);
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
