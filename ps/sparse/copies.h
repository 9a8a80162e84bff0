// A snapshot's plan, shared by the shards, and copies of rows for the snapshot.

#ifndef PENSTOCK_PS_SPARSE_COPIES_H_
#define PENSTOCK_PS_SPARSE_COPIES_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ps/sparse/memory.h"
#include "ps/sparse/row_store.h"

namespace penstock::ps::sparse {

// The selection of a snapshot: rows whose last change was in an epoch after
// `since` and up to `at`. Shared by all shards.
struct SnapshotPlan {
  uint32_t since = 0;
  uint32_t at = 0;
  size_t copy_limit = 0;  // bytes, of all shards together
  std::atomic<size_t> copied{0};
  // The first reason why the snapshot failed. Null if it has not failed.
  std::atomic<const char*> failure{nullptr};

  bool Has(const Row& row) const {
    return row.changed > since && row.changed <= at;
  }
  bool failed() const { return failure.load() != nullptr; }
  void Fail(const char* reason) {
    const char* none = nullptr;
    failure.compare_exchange_strong(none, reason);
  }
};

// Copies of rows from before a change, for a snapshot that has not read them
// yet. Not thread-safe.
class Copies {
 public:
  Copies(size_t stride, Memory* memory)
      : stride_(stride),
        rows_(std::max<size_t>(kChunkBytes / stride, 1)),
        memory_(memory) {}
  ~Copies() { Clear(nullptr); }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  // Adds a copy of the row. If there is no room, marks the snapshot as failed.
  void Add(const Row& row, SnapshotPlan* plan) {
    if (plan->failed()) return Clear(plan);
    if ((newest_ == nullptr || newest_->rows == rows_) && !AddChunk(plan)) {
      return plan->Fail("there is no room for copies of rows that changed");
    }
    std::memcpy(RowsOf(newest_) + newest_->rows++ * stride_, &row, stride_);
  }

  // Returns the newest copy, valid until Pop(), or null.
  const Row* Last() const {
    if (newest_ == nullptr) return nullptr;
    return reinterpret_cast<const Row*>(RowsOf(newest_) +
                                        (newest_->rows - 1) * stride_);
  }
  void Pop(SnapshotPlan* plan) {
    if (--newest_->rows == 0) FreeNewest(plan);
  }

  void Clear(SnapshotPlan* plan) {
    while (newest_ != nullptr) FreeNewest(plan);
  }

 private:
  static constexpr size_t kChunkBytes = size_t{16} << 10;

  struct alignas(64) Chunk {
    Chunk* older;
    size_t rows;
  };

  static char* RowsOf(Chunk* chunk) {
    return reinterpret_cast<char*>(chunk + 1);
  }
  size_t chunk_bytes() const { return sizeof(Chunk) + rows_ * stride_; }

  bool AddChunk(SnapshotPlan* plan) {
    const size_t bytes = chunk_bytes();
    if (plan->copied.fetch_add(bytes, std::memory_order_relaxed) + bytes <=
        plan->copy_limit) {
      void* const memory = memory_->Allocate(bytes, /*huge=*/false);
      if (memory != nullptr) {
        newest_ = new (memory) Chunk{newest_, 0};
        return true;
      }
    }
    plan->copied.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }

  void FreeNewest(SnapshotPlan* plan) {
    Chunk* const chunk = newest_;
    newest_ = chunk->older;
    memory_->Free(chunk, chunk_bytes());
    if (plan != nullptr) {
      plan->copied.fetch_sub(chunk_bytes(), std::memory_order_relaxed);
    }
  }

  const size_t stride_;
  const size_t rows_;  // the number of rows in a chunk
  Memory* const memory_;
  Chunk* newest_ = nullptr;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_PS_SPARSE_COPIES_H_
