#include "ps/sparse/memory.h"

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>

namespace penstock::ps::sparse {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
// The smallest request that gets a mapping, in bytes. For less memory, a
// mapping costs more than it returns.
constexpr size_t kSmallestMapping = size_t{128} << 10;

size_t RoundUp(size_t bytes, size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

// Maps `bytes` bytes of memory, aligned to huge pages if there is room for one.
void* Map(size_t bytes) {
  const size_t slack = bytes >= kHugePage ? kHugePage : 0;
  void* mapped = mmap(nullptr, bytes + slack, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  if (slack == 0) return mapped;
  const auto start = reinterpret_cast<uintptr_t>(mapped);
  const size_t before = RoundUp(start, kHugePage) - start;
  char* const aligned = static_cast<char*>(mapped) + before;
  if (before > 0) munmap(mapped, before);
  if (slack > before) munmap(aligned + bytes, slack - before);
  return aligned;
}

class System : public Memory {
 public:
  void* Allocate(size_t bytes, bool huge) override {
    if (bytes < kSmallestMapping) {
      return std::aligned_alloc(64, RoundUp(bytes, 64));
    }
    bytes = RoundUp(bytes, 4096);
    void* const memory = Map(bytes);
    // Advise the kernel to use huge pages. Ignore errors: a kernel without huge
    // pages refuses the advice.
    if (memory != nullptr) {
      madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
    }
    return memory;
  }

  void Free(void* memory, size_t bytes) override {
    if (bytes < kSmallestMapping) {
      std::free(memory);
    } else {
      munmap(memory, RoundUp(bytes, 4096));
    }
  }
};

}  // namespace

Memory* SystemMemory() {
  static System* const system = new System();
  return system;
}

}  // namespace penstock::ps::sparse
