#include "frameworks/torch/pool_allocator.h"

#include <c10/core/CPUAllocator.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "collectives/host/pool.h"
#include "frameworks/torch/torch_headers.h"
#include "transport/base/mutex.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace pytorch {
namespace {

// True once tensors may be in a pool. Until then, no lock is needed.
std::atomic<bool> has_pool{false};
// The number of forks when the pool was given.
std::atomic<uint32_t> pool_forks{0};

bool IsUsable() {
  return has_pool.load(std::memory_order_acquire) &&
         progress::ForkCount() == pool_forks.load(std::memory_order_relaxed);
}

}  // namespace

struct PoolAllocator::Held {
  std::unique_ptr<collectives::PoolMemory> memory;
  uint32_t fork_count;
};

PoolAllocator* PoolAllocator::Get() {
  // Never destroyed, because tensors may outlive static objects.
  static PoolAllocator* const allocator = [] {
    auto* const made = new PoolAllocator(c10::GetCPUAllocator());
    c10::SetCPUAllocator(made, /*priority=*/UINT8_MAX);
    return made;
  }();
  return allocator;
}

void PoolAllocator::Request(uint64_t bytes) {
  PoolAllocator* const allocator = Get();
  base::MutexLock lock(&allocator->mu_);
  allocator->requested_ = bytes;
}

uint64_t PoolAllocator::TakeRequest() {
  PoolAllocator* const allocator = Get();
  base::MutexLock lock(&allocator->mu_);
  return std::exchange(allocator->requested_, 0);
}

void PoolAllocator::Use(std::shared_ptr<collectives::Pool> pool) {
  PoolAllocator* const allocator = Get();
  base::MutexLock lock(&allocator->mu_);
  allocator->pool_ = std::move(pool);
  pool_forks.store(progress::ForkCount(), std::memory_order_relaxed);
  has_pool.store(true, std::memory_order_release);
}

std::shared_ptr<collectives::Pool> PoolAllocator::pool() {
  base::MutexLock lock(&mu_);
  return pool_;
}

c10::DataPtr PoolAllocator::allocate(size_t bytes) {
  if (bytes < kLeastBytes || !IsUsable()) return others_->allocate(bytes);
  auto memory = pool()->Allocate(bytes);
  if (!memory.ok()) return others_->allocate(bytes);
  void* const data = (*memory)->data();
  return {data, new Held{*std::move(memory), progress::ForkCount()},
          &PoolAllocator::Delete, c10::Device(c10::DeviceType::CPU)};
}

void PoolAllocator::Delete(void* held) {
  auto* const memory = static_cast<Held*>(held);
  // Leaks the record in the child of a fork: the memory is the parent's.
  if (memory->fork_count == progress::ForkCount()) delete memory;
}

}  // namespace pytorch
}  // namespace penstock
