// Memory that counts allocations, and fails on request.

#ifndef PENSTOCK_TESTS_PS_SPARSE_FAILING_MEMORY_H_
#define PENSTOCK_TESTS_PS_SPARSE_FAILING_MEMORY_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "ps/sparse/memory.h"

namespace penstock::ps::sparse {

// A Memory that counts its allocations, and fails when a test says so. All
// memory must be freed before the destructor runs. Thread-safe.
class FailingMemory : public Memory {
 public:
  ~FailingMemory() override { EXPECT_EQ(held_, 0u) << "bytes leaked"; }

  void* Allocate(size_t bytes, bool huge) override {
    if (left_.fetch_sub(1) <= 0) {
      left_ = 0;
      return nullptr;
    }
    void* const memory = SystemMemory()->Allocate(bytes, huge);
    if (memory != nullptr) held_ += bytes;
    return memory;
  }
  void Free(void* memory, size_t bytes) override {
    held_ -= bytes;
    SystemMemory()->Free(memory, bytes);
  }

  // Lets the next `requests` requests succeed. Later requests fail.
  void FailAfter(int64_t requests) { left_ = requests; }
  void Heal() { left_ = INT64_MAX; }

  size_t held() const { return held_; }

 private:
  std::atomic<int64_t> left_{INT64_MAX};
  std::atomic<size_t> held_{0};
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_TESTS_PS_SPARSE_FAILING_MEMORY_H_
