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

class StoreReservation;

// Keeps tensors by name. Shares their memory, which may be that of the message
// they came in; a tensor that is less than half of its message is copied
// instead. One on a device is always copied: on the device, or to the heap if
// that has no memory left. So no peer's device is held, and no kernel writes to
// what is stored. Each call is atomic. Thread-safe.
class TensorStore {
 public:
  // The most that an entry takes beside its name and its tensor's memory, in
  // bytes.
  static constexpr size_t kEntryBytes = 512;

  // `budget_bytes` bounds what is held: for each tensor its name, kEntryBytes,
  // and the memory that it keeps from being freed, wherever that is.
  explicit TensorStore(size_t budget_bytes) : budget_bytes_(budget_bytes) {}

  // Stores every tensor under its name, in place of what was there. If a name
  // comes twice, the last one counts. Appends the tensors that were replaced to
  // `replaced`, unless that is null. Returns how many bytes are held then.
  //
  // Returns INVALID_ARGUMENT for an empty name, and RESOURCE_EXHAUSTED, with
  // the numbers, above the budget, or if there is no memory for a copy; and the
  // errors of DeviceMemory. On an error nothing has changed.
  absl::StatusOr<size_t> Put(const Bundle& bundle, Bundle* replaced = nullptr);

  // As Put(), but shares memory on devices, too, which must be this process's
  // own, and that nobody writes to: OwnOnDevices(). Uses up `reserved`, unless
  // that is null, instead of other room.
  absl::StatusOr<size_t> PutOwn(const Bundle& bundle, Bundle* replaced,
                                StoreReservation* reserved);

  // Returns the named tensors, in the order of `names`. Returns NOT_FOUND,
  // which names the first that is missing.
  absl::StatusOr<Bundle> Get(absl::Span<const std::string> names) const;

  // Deletes the named tensors, and returns how many of the names existed.
  size_t Delete(absl::Span<const std::string> names);

  // Returns all tensors, in the order of their names.
  Bundle All() const;

 private:
  friend class StoreReservation;
  using Tensors = std::map<std::string, Tensor>;

  const size_t budget_bytes_;
  mutable absl::Mutex mu_;
  Tensors tensors_ ABSL_GUARDED_BY(mu_);
  size_t bytes_ ABSL_GUARDED_BY(mu_) = 0;
  size_t reserved_ ABSL_GUARDED_BY(mu_) = 0;  // of the budget, beside bytes_
};

// Room in a store for tensors that are still being gathered. Gives back what
// was not used when it goes. The store must outlive it. Not thread-safe.
class StoreReservation {
 public:
  explicit StoreReservation(TensorStore* store) : store_(store) {}
  ~StoreReservation();
  StoreReservation(const StoreReservation&) = delete;
  StoreReservation& operator=(const StoreReservation&) = delete;

  // Reserves room for one more tensor, which keeps `held_bytes` from being
  // freed. Returns RESOURCE_EXHAUSTED, with the numbers, if there is none.
  absl::Status Add(const std::string& name, size_t held_bytes);

 private:
  friend class TensorStore;

  TensorStore* const store_;
  size_t bytes_ = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STORE_H_
