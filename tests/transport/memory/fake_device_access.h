// Device memory without a device, for tests of what hands it on.

#ifndef PENSTOCK_TESTS_TRANSPORT_MEMORY_FAKE_DEVICE_ACCESS_H_
#define PENSTOCK_TESTS_TRANSPORT_MEMORY_FAKE_DEVICE_ACCESS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/strings/string_view.h"
#include "transport/memory/bytes.h"
#include "transport/memory/device_access.h"

namespace penstock {
namespace memory {

// Memory at addresses where the CPU crashes, over pages of a memfd. Another
// process of this host opens an allocation through /proc; the owning object
// must not have been destroyed. Not for more than some hundred allocations.
// Thread-safe.
class FakeDeviceAccess : public DeviceAccess {
 public:
  FakeDeviceAccess();
  ~FakeDeviceAccess() override;

  // Allocates device memory with these bytes, on the device of that number. The
  // last share frees it, but not before SharedAllocation::memory has been let
  // go of.
  Bytes Put(absl::string_view content, int ordinal = 0);
  // Returns what is there.
  std::string Get(absl::Span<const uint8_t> range) const;

  // Have all such calls fail from now on; OK: succeed again.
  void FailCopies(absl::Status error);
  void FailShares(absl::Status error);
  void FailOpens(absl::Status error);
  void FailExports(absl::Status error);
  void FailFlushes(absl::Status error);
  // Has what network devices write to memory that is allocated from now on not
  // be seen before FlushWrites().
  void NeedFlushes();
  int flushes() const;
  // Returns where network devices find the range, or null if it is none.
  uint8_t* Backing(absl::Span<const uint8_t> range) const;
  int copies() const;
  int opens() const;
  // How many allocations of other objects are open.
  int open_now() const;
  // How many allocations of this object's have not been freed.
  int allocated() const;

  absl::Status CopyToHost(absl::Span<const uint8_t> from, uint8_t* to) override;
  absl::Status CopyFromHost(absl::Span<const uint8_t> from,
                            uint8_t* to) override;
  absl::StatusOr<SharedAllocation> Share(
      absl::Span<const uint8_t> range) override;
  absl::StatusOr<OpenAllocation> Open(absl::string_view handle,
                                      uint64_t size) override;
  absl::StatusOr<int> OrdinalOf(absl::Span<const uint8_t> range) override;
  absl::StatusOr<Dmabuf> ExportDmabuf(absl::Span<const uint8_t> range) override;
  absl::Status FlushWrites(absl::Span<const uint8_t> range) override;

 private:
  struct Allocation;
  struct State;

  // Outlives this while there are shares of its memory.
  const std::shared_ptr<State> state_;
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_MEMORY_FAKE_DEVICE_ACCESS_H_
