// Simulated device memory, for tests of code that passes it on.

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

// A simulated device whose memory has addresses where the CPU crashes, over
// pages of a memfd. Another process on this host opens an allocation through
// /proc; the owning object must still live. Supports some hundred allocations.
// Thread-safe.
class FakeDeviceAccess : public DeviceAccess {
 public:
  FakeDeviceAccess();
  ~FakeDeviceAccess() override;

  // Allocates memory on device `ordinal`, with these bytes. The last reference
  // frees the memory, once SharedAllocation::memory has been released.
  Bytes Put(absl::string_view content, int ordinal = 0);
  // Returns the contents of the range.
  std::string Get(absl::Span<const uint8_t> range) const;

  // Make all later calls of one kind fail with `error`. With OK, the calls
  // succeed again.
  void FailCopies(absl::Status error);
  void FailShares(absl::Status error);
  void FailOpens(absl::Status error);
  void FailExports(absl::Status error);
  void FailFlushes(absl::Status error);
  // Hides the writes of network devices in memory that is allocated later,
  // until FlushWrites().
  void NeedFlushes();
  int flushes() const;
  // Returns the network devices' address of the range, or null.
  uint8_t* Backing(absl::Span<const uint8_t> range) const;
  int copies() const;
  int opens() const;
  // Returns the number of open allocations of other objects.
  int open_now() const;
  // Returns the number of this object's allocations that are not freed.
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

  // Outlives this object while shares of its memory exist.
  const std::shared_ptr<State> state_;
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_MEMORY_FAKE_DEVICE_ACCESS_H_
