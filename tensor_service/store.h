// Named tensors in memory, under a budget.

#ifndef PENSTOCK_TENSOR_SERVICE_STORE_H_
#define PENSTOCK_TENSOR_SERVICE_STORE_H_

#include <cstddef>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Shares the memory of what is put, which may be the message it came in, unless
// the tensor is less than half of that: then it is copied. Each call is atomic.
// Thread-safe.
class TensorStore {
 public:
  // What an entry takes beside its name and its tensor's memory, at most.
  static constexpr size_t kEntryBytes = 512;

  // `budget_bytes` bounds what is held: for each tensor the memory that it
  // keeps from being freed, its name, and kEntryBytes.
  explicit TensorStore(size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // Stores every tensor under its name; of a name that repeats, the last.
  // Gives the bytes held then. INVALID_ARGUMENT for an empty name,
  // RESOURCE_EXHAUSTED above the budget, with the numbers, or where there is no
  // memory for a copy; then nothing has changed. The replaced tensors go to
  // `replaced` unless that is null.
  absl::StatusOr<size_t> Put(const Bundle& bundle, Bundle* replaced = nullptr);

  // In the order of `names`. NOT_FOUND names the first that is missing.
  absl::StatusOr<Bundle> Get(absl::Span<const std::string> names) const;

  // How many of the names there were.
  size_t Delete(absl::Span<const std::string> names);

  // Everything, by name.
  Bundle All() const;

 private:
  using Tensors = std::map<std::string, Tensor>;

  const size_t budget_bytes_;
  mutable absl::Mutex mu_;
  Tensors tensors_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STORE_H_
