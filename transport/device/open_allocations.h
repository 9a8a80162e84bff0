// The memory that other processes have named to this one, and that it has open.

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

// Where an allocation lies in this process.
struct Mapping {
  abi::Address address = 0;
  size_t size = 0;
  // Closes it; empty if it is this process's own.
  OpenedMemory memory;
};

// Each is open once, from the first who asks for it to the last who has done
// with it, and declared (memory::DeviceRange) as long. None is kept beyond
// that: its owner may free it at any time then, and what an open allocation
// reads after that is not defined. Who knows when the owner will not, such as a
// connection whose peer tells it, keeps a share.
//
// Outlives all shares. Thread-safe. Who opens an allocation waits while another
// thread opens or closes that one, and for no other.
class OpenAllocations {
 public:
  // Opens at most `max` at once. `access` is what they are declared with.
  OpenAllocations(memory::DeviceAccess* access, size_t max)
      : access_(access), max_(max) {}
  OpenAllocations(const OpenAllocations&) = delete;
  OpenAllocations& operator=(const OpenAllocations&) = delete;

  // Returns a share of the allocation with this name, which `map` opens, unless
  // it is open. `map` is called without a lock, by one thread for a name at a
  // time. Returns the error of `map`; RESOURCE_EXHAUSTED if too many are open.
  absl::StatusOr<memory::OpenAllocation> Open(
      absl::string_view name, absl::FunctionRef<absl::StatusOr<Mapping>()> map);

  // Whether `address` lies in one that is another process's. Waits for no
  // driver.
  bool IsForeign(abi::Address address) const;

 private:
  struct Entry {
    // False while a thread opens or closes it: the entry is that thread's then,
    // and there are no shares.
    bool is_open = false;
    // Members are destroyed from the last to the first.
    Mapping mapping;
    std::unique_ptr<memory::DeviceRange> declared;
    int shares = 0;
  };
  using Entries = std::map<std::string, Entry>;
  class Share;

  // Returns the open entry of that name, or the end if there is none, once
  // nobody opens or closes it.
  Entries::iterator FindLocked(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  std::unique_ptr<memory::DeviceRange> Declare(const Mapping& mapping) const;
  memory::OpenAllocation ShareLocked(Entries::iterator entry)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Drop(Entries::iterator entry);

  memory::DeviceAccess* const access_;
  const size_t max_;

  // Never held while the driver is called.
  mutable base::Mutex mu_;
  // One has been opened, or closed, or could not be opened.
  std::condition_variable_any settled_;
  Entries entries_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_OPEN_ALLOCATIONS_H_
