// Devices that are not there: a test's stand-in for GPUs.

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

// As many devices as it is made with, whose addresses the CPU cannot touch: a
// read or a write of one kills the process. What lies there is shown by Peek().
//
// Its streams are lazy: what is queued in one runs only once somebody waits for
// an event behind it, in the order of the stream; one piece each time that
// somebody asks whether it has come, who is told about those before. So who
// forgets to wait sees what was there before, and who waits for too much has
// run what should not have. Thread-safe.
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
  absl::StatusOr<bool> HasCome(const DeviceEvent& event) override;
  // Fails unless LetLend() says otherwise. Has run what the buffer comes after,
  // as a transport waits for it.
  absl::StatusOr<grpc::Slice> Lend(std::shared_ptr<Buffer> buffer) override;
  Device DeviceOfSlice(const void* address) const override;

  // Has every call of Lend() succeed, or every so many; 0, as at first: none,
  // as the process has no transport for it.
  void LetLend(int every = 1) { lend_every_ = every; }
  // Returns a slice on a device that has a copy of `bytes`, not none, as a
  // transport makes it of what a peer has lent.
  grpc::Slice SliceOn(const Device& device, absl::string_view bytes);
  // Returns the bytes of a message, wherever they are.
  std::string Flat(const grpc::ByteBuffer& message);

  // What a program does on its own. Allocates `bytes` bytes, and returns their
  // address on the device.
  uintptr_t Malloc(const Device& device, size_t bytes);
  void Free(uintptr_t address);
  // Returns the memory behind an address, as the device sees it.
  char* Peek(uintptr_t address);
  // Queues work, as a kernel.
  void Queue(const Device& device, Stream stream, std::function<void()> work);
  // Returns how much work of a stream has not run.
  size_t Queued(const Device& device, Stream stream);

  // Has no stream get on, so that who waits for an event does so until this is
  // called with false.
  void SetStalled(bool stalled);

  // The call of DeviceMemory's functions after `calls` more fails.
  void FailAfter(int calls);
  // Returns whether it has.
  bool has_failed();
  // The calls so far, and those that copy.
  int calls();
  int copies();
  // Memory that is not freed.
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
  // Returns whether nothing of it was left.
  bool RunOneLocked(const Event& event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int devices_;
  std::atomic<int> lend_every_{0};
  std::atomic<int> lends_{0};
  mutable absl::Mutex mu_;
  std::map<uintptr_t, Memory> memory_ ABSL_GUARDED_BY(mu_);
  std::map<Key, Work> streams_ ABSL_GUARDED_BY(mu_);
  bool stalled_ ABSL_GUARDED_BY(mu_) = false;
  int left_ ABSL_GUARDED_BY(mu_) = -1;  // calls before the one that fails
  bool failed_ ABSL_GUARDED_BY(mu_) = false;
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  int copies_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TESTS_TENSOR_SERVICE_FAKE_DEVICE_H_
