// Keeps track of memory of other processes that this process has open.

#ifndef PENSTOCK_TRANSPORT_DEVICE_OPEN_ALLOCATIONS_H_
#define PENSTOCK_TRANSPORT_DEVICE_OPEN_ALLOCATIONS_H_

#include <condition_variable>
#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/base/mutex.h"
#include "transport/device/handles.h"
#include "transport/memory/device_access.h"
#include "transport/memory/device_ranges.h"

namespace penstock {
namespace device {

// The location of an allocation in this process.
struct Mapping {
  abi::Address address = 0;
  size_t size = 0;
  // Closes the mapped memory when destroyed. Empty if the memory belongs to
  // this process.
  OpenedMemory memory;
};

// The allocations of other processes that this process has opened by name. Each
// allocation stays open, and declared as a memory::DeviceRange, while it has
// users. Without users the allocation is closed, because its owner may free it
// at any time, and reading freed memory is undefined. A connection holds a
// reference until the owner announces that it will free the allocation.
//
// Must outlive all references. Thread-safe. A thread that opens an allocation
// waits only for other threads that open or close the same allocation.
class OpenAllocations {
 public:
  // Opens at most `max` allocations at a time. Declares open allocations with
  // `access`.
  OpenAllocations(memory::DeviceAccess* access, size_t max)
      : access_(access), max_(max) {}
  OpenAllocations(const OpenAllocations&) = delete;
  OpenAllocations& operator=(const OpenAllocations&) = delete;

  // Returns a reference to the allocation with this name. Calls `map` to open
  // it, if it is not open. Calls `map` without a lock, on one thread at a time
  // for each name. Returns the error of `map`, or RESOURCE_EXHAUSTED if too
  // many are open.
  absl::StatusOr<memory::OpenAllocation> Open(
      absl::string_view name, absl::FunctionRef<absl::StatusOr<Mapping>()> map);

  // Returns true if `address` is in an open allocation of another process. Does
  // not wait for a driver.
  bool IsForeign(abi::Address address) const;

 private:
  struct Entry {
    // False while a thread opens or closes the allocation. Meanwhile that
    // thread owns the entry, and nobody has a reference.
    bool is_open = false;
    // Members are destroyed from the last to the first.
    Mapping mapping;
    std::unique_ptr<memory::DeviceRange> declared;
    int shares = 0;
  };
  using Entries = std::map<std::string, Entry>;
  class Share;

  // Waits while a thread opens or closes the entry with this name. Returns the
  // open entry, or the end if there is none.
  Entries::iterator FindLocked(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::unique_ptr<memory::DeviceRange> Declare(const Mapping& mapping) const;
  memory::OpenAllocation ShareLocked(Entries::iterator entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drop(Entries::iterator entry);

  memory::DeviceAccess* const access_;
  const size_t max_;

  // Guards the members below. Never held during a call of the driver.
  mutable base::Mutex mu_;
  // Signalled when opening an allocation has succeeded or failed, and when an
  // allocation has been closed.
  std::condition_variable_any settled_;
  Entries entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_OPEN_ALLOCATIONS_H_
