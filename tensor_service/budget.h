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
  // A number of bytes that count against a budget until this goes, on any
  // thread. It may outlive the budget. Not thread-safe.
  class Hold {
   public:
    // Holds nothing, of no budget.
    Hold() = default;
    ~Hold();
    Hold(Hold&& other) noexcept;
    Hold& operator=(Hold&& other) noexcept;

    size_t bytes() const { return bytes_; }

    // Moves `bytes` of this, which it has, to a new hold.
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
  // above the limit. `freed` bytes of other holds do not count here: the caller
  // drops those next.
  absl::StatusOr<Hold> Take(size_t bytes, size_t freed = 0);

  // Returns how many bytes count now.
  size_t held() const;
  size_t limit() const { return limit_; }

 private:
  const size_t limit_;
  const std::shared_ptr<Count> count_;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_BUDGET_H_
