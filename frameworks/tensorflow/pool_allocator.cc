#include "frameworks/tensorflow/pool_allocator.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "tensorflow/core/framework/allocator_registry.h"
#include "transport/pool.h"

namespace penstock {
namespace tensorflow {
namespace {

// Serves TensorFlow's own pools, for example the pool of memory for copies from
// devices.
class SubAllocator final : public ::tensorflow::SubAllocator {
 public:
  explicit SubAllocator(::tensorflow::Allocator* allocator)
      : ::tensorflow::SubAllocator({}, {}), allocator_(allocator) {}

  void* Alloc(size_t alignment, size_t bytes, size_t* received) override {
    *received = bytes;
    return allocator_->AllocateRaw(alignment, bytes);
  }
  void Free(void* data, size_t) override { allocator_->DeallocateRaw(data); }
  bool SupportsCoalescing() const override { return false; }

 private:
  ::tensorflow::Allocator* const allocator_;
};

class Factory final : public ::tensorflow::AllocatorFactory {
 public:
  ::tensorflow::Allocator* CreateAllocator() override {
    return new PoolAllocator;
  }
  ::tensorflow::SubAllocator* CreateSubAllocator(int) override {
    return new SubAllocator(new PoolAllocator);
  }
};

std::atomic<bool> in_pool{false};

}  // namespace

bool TensorsLieInPool() { return in_pool; }

PoolAllocator::Part* PoolAllocator::PartOf(const void* data) {
  // Selects the part by bit 12 and above, because addresses in the pool differ
  // only in these bits.
  return &parts_[(reinterpret_cast<uintptr_t>(data) >> 12) % kParts];
}

void* PoolAllocator::AllocateRaw(size_t alignment, size_t bytes) {
  if (bytes >= kLeastBytes && alignment <= kAllocatorAlignment) {
    std::shared_ptr<uint8_t> lease = AllocateFromPool(bytes);
    void* const data = lease.get();
    if (data != nullptr) {
      Part* const part = PartOf(data);
      base::MutexLock lock(&part->mu);
      part->leases[data] = std::move(lease);
      return data;
    }
  }
  void* data = nullptr;
  const int error =
      posix_memalign(&data, std::max(alignment, sizeof(void*)), bytes);
  return error == 0 ? data : nullptr;
}

void PoolAllocator::DeallocateRaw(void* data) {
  std::shared_ptr<uint8_t> lease;  // released outside the lock
  {
    Part* const part = PartOf(data);
    base::MutexLock lock(&part->mu);
    auto it = part->leases.find(data);
    if (it != part->leases.end()) {
      lease = std::move(it->second);
      part->leases.erase(it);
    }
  }
  if (lease == nullptr) free(data);
}

void UsePoolForTensors() {
  in_pool = true;
  constexpr int kPriority = 1000;  // TensorFlow's own priorities are 100 to 200
  ::tensorflow::AllocatorFactoryRegistry::singleton()->Register(
      __FILE__, __LINE__, "PenstockPool", kPriority, new Factory);
}

}  // namespace tensorflow
}  // namespace penstock
