// A limit on the bytes that several holders have together.

#ifndef PENSTOCK_TENSOR_SERVICE_BUDGET_H_
#define PENSTOCK_TENSOR_SERVICE_BUDGET_H_

#include <cstddef>
#include <memory>

#include "absl/status/statusor.h"

namespace penstock::tensor {

// Counts the bytes that are held, up to a limit. Thread-safe.
class Budget {
 private:
  struct Count;

 public:
  // A number of bytes that count against a budget until this object is
  // destroyed, on any thread. May outlive the budget. Not thread-safe.
  class Hold {
   public:
    // Makes a hold of no bytes and no budget.
    Hold() = default;
    ~Hold();
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;

    size_t bytes() const { return bytes_; }

    // Moves `bytes`, at most bytes(), from this hold to a new one.
    Hold Split(size_t bytes);

   private:
    friend class Budget;
    Hold(std::shared_ptr<Count> count, size_t bytes);

    std::shared_ptr<Count> count_;
    size_t bytes_ = 0;
  };

  explicit Budget(size_t limit);
  Budget(const Budget&) = delete;
  Budget& operator=(const Budget&) = delete;

  // Returns a hold of `bytes`. Returns RESOURCE_EXHAUSTED, with the numbers,
  // above the limit. Does not count `freed` bytes of other holds, which the
  // caller is about to drop.
  absl::StatusOr<Hold> Take(size_t bytes, size_t freed = 0);

  // Returns the number of bytes in all holds.
  size_t held() const;
  size_t limit() const { return limit_; }

 private:
  const size_t limit_;
  const std::shared_ptr<Count> count_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_BUDGET_H_
