#include "transport/device/owned_blocks.h"

#include <cstdint>
#include <utility>

#include "transport/progress/fork_count.h"

namespace penstock {
namespace device {

class OwnedBlocks::Use {
 public:
  Use(OwnedBlocks* table, DeviceBlock block)
      : table_(table),
        memory_(std::make_shared<const DeviceBlock>(std::move(block))),
        fork_count_(progress::ForkCount()) {}
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;
  // Removes the entry before freeing the block, because another block may get
  // the same address afterwards.
  ~Use() {
    // Takes no lock in a forked child, because a thread of the parent may have
    // held the lock.
    if (fork_count_ != progress::ForkCount()) return;
    base::MutexLock lock(&table_->mu_);
    table_->used_.erase(memory_->get());
  }

  const std::shared_ptr<const DeviceBlock>& memory() const { return memory_; }

 private:
  OwnedBlocks* const table_;
  const std::shared_ptr<const DeviceBlock> memory_;
  const uint32_t fork_count_;
};

std::shared_ptr<const void> OwnedBlocks::Add(DeviceBlock block) {
  const abi::Address address = block.get();
  auto use = std::make_shared<const Use>(this, std::move(block));
  base::MutexLock lock(&mu_);
  used_[address] = use;
  return use;
}

OwnedBlocks::Found OwnedBlocks::At(abi::Address address) const {
  std::shared_ptr<const Use> use;
  {
    base::MutexLock lock(&mu_);
    const auto found = used_.find(address);
    if (found != used_.end()) use = found->second.lock();
  }
  if (use == nullptr) return {};
  return {use->memory(), use};
}

}  // namespace device
}  // namespace penstock
