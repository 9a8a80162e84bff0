#include "tensor_service/allocator.h"

#include <atomic>

namespace penstock::tensor {
namespace {

class Heap final : public Allocator {
 public:
  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t bytes) override {
    return Buffer::Allocate(bytes);
  }
};

// The default allocator. Null means HeapAllocator(), so that a constant
// initialiser, which needs no start-up code, suffices.
std::atomic<Allocator*> default_allocator{nullptr};

}  // namespace

Allocator* HeapAllocator() {
  static auto* const heap = new Heap;  // lives as long as the process
  return heap;
}

Allocator* DefaultAllocator() {
  Allocator* const chosen = default_allocator.load(std::memory_order_acquire);
  return chosen == nullptr ? HeapAllocator() : chosen;
}

void SetDefaultAllocator(Allocator* allocator) {
  default_allocator.store(allocator, std::memory_order_release);
}

}  // namespace penstock::tensor
