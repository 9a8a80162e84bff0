// Simulates devices in place of GPUs.

#ifndef PENSTOCK_TESTS_TENSOR_SERVICE_FAKE_DEVICE_H_
#define PENSTOCK_TESTS_TENSOR_SERVICE_FAKE_DEVICE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/device_memory.h"

namespace penstock::tensor {

// Simulated devices with addresses that the CPU cannot access: a read or a
// write kills the process. Peek() shows the contents.
//
// Streams are lazy. Work in a stream runs in order, and only when somebody
// waits for a later event. Each HasCompleted() runs one piece of work. Code
// that does not wait therefore sees the old contents. Code that waits for too
// much runs work that should not have run. Thread-safe.
class FakeDevices : public DeviceMemory {
 public:
  explicit FakeDevices(int devices) : devices_(devices) {}

  absl::StatusOr<std::shared_ptr<Buffer>> Allocate(const Device& device,
                                                   size_t bytes) override;
  absl::StatusOr<Device> DeviceOf(uintptr_t address) override;
  absl::Status Copy(absl::Span<const CopyToHost> copies) override;
  absl::Status Copy(absl::Span<const CopyFromHost> copies) override;
  absl::Status Copy(absl::Span<const CopyOnDevice> copies) override;
  absl::StatusOr<std::shared_ptr<const DeviceEvent>> Record(
      const Device& device, Stream stream) override;
  absl::Status Order(const DeviceEvent& event, const Device& device,
                     Stream stream) override;
  absl::Status Await(const DeviceEvent& event) override;
  absl::StatusOr<bool> HasCompleted(const DeviceEvent& event) override;
  // Lends the buffer if LetLend() permits. First waits for the buffer's event,
  // as a transport does: runs all work that was queued before the event.
  absl::StatusOr<grpc::Slice> Lend(std::shared_ptr<Buffer> buffer) override;
  Device DeviceOfSlice(const void* address) const override;

  // Makes one call of Lend() in `every` succeed. 0, the initial value, makes
  // all calls fail, as in a process without a suitable transport.
  void LetLend(int every = 1) { lend_every_ = every; }
  // Returns a slice on a device with a copy of `bytes`, like a transport for a
  // peer's lent memory. `bytes` must not be empty.
  grpc::Slice SliceOn(const Device& device, absl::string_view bytes);
  // Returns the bytes of a message from all locations.
  std::string Flat(const grpc::ByteBuffer& message);

  // Allocates `bytes` bytes like a program, and returns the address on the
  // device.
  uintptr_t Malloc(const Device& device, size_t bytes);
  void Free(uintptr_t address);
  // Returns the memory behind an address.
  char* Peek(uintptr_t address);
  // Queues work for the stream, as a kernel launch does.
  void Queue(const Device& device, Stream stream, std::function<void()> work);
  // Returns the number of works in a stream's queue.
  size_t Queued(const Device& device, Stream stream);

  // Stops all streams, or lets them continue. While they are stopped, waits for
  // events block.
  void SetStalled(bool stalled);

  // Makes one call of DeviceMemory's functions fail, after `calls` further
  // calls.
  void FailAfter(int calls);
  // Returns true if the call of FailAfter() has failed.
  bool has_failed();
  // Return the number of all calls, and the number of calls that copy.
  int calls();
  int copies();
  // Returns the number of allocations that are not freed.
  size_t allocations();

 private:
  using Key = std::pair<int, uintptr_t>;  // device and stream
  struct Event;
  struct Memory {
    Device device;
    size_t size;
    char* behind;
  };
  struct Work {
    std::deque<std::function<void()>> queue;
    uint64_t ran = 0;
  };

  absl::Status CallLocked(const Device& device)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<char*> FindLocked(const Buffer& buffer, size_t offset,
                                   size_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<char*> ReadyLocked(const Buffer& buffer, size_t offset,
                                    size_t size)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void RunLocked(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if no work was left.
  bool RunOneLocked(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int devices_;
  std::atomic<int> lend_every_{0};
  std::atomic<int> lends_{0};
  mutable absl::Mutex mu_;
  std::map<uintptr_t, Memory> memory_ ABSL_GUARDED_BY(mu_);
  std::map<Key, Work> streams_ ABSL_GUARDED_BY(mu_);
  bool stalled_ ABSL_GUARDED_BY(mu_) = false;
  int left_ ABSL_GUARDED_BY(mu_) = -1;  // calls before the failing one
  bool failed_ ABSL_GUARDED_BY(mu_) = false;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  int copies_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TESTS_TENSOR_SERVICE_FAKE_DEVICE_H_
