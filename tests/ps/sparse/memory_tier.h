// A tier in memory that fails on request.

#ifndef PENSTOCK_TESTS_PS_SPARSE_MEMORY_TIER_H_
#define PENSTOCK_TESTS_PS_SPARSE_MEMORY_TIER_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "gtest/gtest.h"
#include "ps/sparse/tier.h"

namespace penstock::ps::sparse {

// A tier in memory. Fails the test if a caller breaks Tier's contract.
// Thread-safe.
class MemoryTier : public Tier {
 public:
  absl::Status Put(Key key, absl::string_view bytes) override {
    absl::MutexLock lock(&mu_);
    if (rows_.size() >= max_rows_) {
      return absl::ResourceExhaustedError("the tier is full");
    }
    row_bytes_ = bytes.size();
    EXPECT_TRUE(rows_.emplace(Name(key), std::string(bytes)).second)
        << key.id << " is there already";
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Get(Key key, char* bytes, size_t size) override {
    absl::MutexLock lock(&mu_);
    if (broken_) return absl::InternalError("a test broke it");
    const auto row = rows_.find(Name(key));
    if (row == rows_.end()) return false;
    EXPECT_EQ(row->second.size(), size);
    std::memcpy(bytes, row->second.data(), size);
    return true;
  }

  absl::Status Erase(Key key) override {
    absl::MutexLock lock(&mu_);
    if (broken_) return absl::InternalError("a test broke it");
    EXPECT_EQ(rows_.erase(Name(key)), 1u) << key.id << " is not there";
    return absl::OkStatus();
  }

  absl::StatusOr<std::unique_ptr<Walk>> Begin() override {
    absl::MutexLock lock(&mu_);
    if (broken_) return absl::InternalError("a test broke it");
    return std::unique_ptr<Walk>(new WalkOfCopy(rows_));
  }

  uint64_t BytesLeft() const override {
    absl::MutexLock lock(&mu_);
    if (max_rows_ == SIZE_MAX || row_bytes_ == 0) return UINT64_MAX;
    return (max_rows_ - std::min(rows_.size(), max_rows_)) * row_bytes_;
  }
  // Returns false if the tier has more rows than its limit, and so acts like a
  // full disk.
  bool ErasedIsRoom() const override {
    absl::MutexLock lock(&mu_);
    return rows_.size() <= max_rows_;
  }

  size_t size() const {
    absl::MutexLock lock(&mu_);
    return rows_.size();
  }
  // Limits the number of rows.
  void Limit(size_t rows) {
    absl::MutexLock lock(&mu_);
    max_rows_ = rows;
  }
  // Makes all later reads fail.
  void Break() {
    absl::MutexLock lock(&mu_);
    broken_ = true;
  }

 private:
  using Rows = std::map<std::pair<uint32_t, uint64_t>, std::string>;

  class WalkOfCopy : public Walk {
   public:
    explicit WalkOfCopy(Rows rows)
        : rows_(std::move(rows)), next_(rows_.begin()) {}
    absl::StatusOr<bool> Next(char* bytes, size_t size) override {
      if (next_ == rows_.end()) return false;
      EXPECT_EQ(next_->second.size(), size);
      std::memcpy(bytes, next_->second.data(), size);
      ++next_;
      return true;
    }

   private:
    const Rows rows_;
    Rows::const_iterator next_;
  };

  static std::pair<uint32_t, uint64_t> Name(Key key) {
    return {key.shard, key.id};
  }

  mutable absl::Mutex mu_;
  Rows rows_ ABSL_GUARDED_BY(mu_);
  size_t row_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  size_t max_rows_ ABSL_GUARDED_BY(mu_) = SIZE_MAX;
  bool broken_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock::ps::sparse

#endif  // PENSTOCK_TESTS_PS_SPARSE_MEMORY_TIER_H_
