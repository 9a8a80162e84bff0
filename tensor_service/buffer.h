// The memory of a tensor: shared, reference-counted, of any origin.

#ifndef PENSTOCK_TENSOR_SERVICE_BUFFER_H_
#define PENSTOCK_TENSOR_SERVICE_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/device.h"

namespace penstock::tensor {

class DeviceEvent;

// A range of bytes at a fixed address. Lives until the last holder drops its
// handle. Holders are tensors, and gRPC calls that still send the bytes.
//
// A buffer may be on a device, where the CPU cannot read its bytes. Then data()
// is null, and DeviceMemory copies the bytes.
//
// Handles may be copied and dropped on any thread. No lock guards the bytes:
// only Tensor writes to them, and only while there is one holder.
class Buffer {
 public:
  // The alignment of allocated memory, in bytes: a cache line, which is also
  // the alignment that vector loads need.
  static constexpr size_t kAlignment = 64;

  // Allocates ordinary memory, aligned to kAlignment and not initialised.
  // Returns RESOURCE_EXHAUSTED if the system has too little. For other memory
  // see allocator.h.
  static absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t size);

  // Holds the bytes of `slice`, read-only, without a copy. Only a short slice,
  // which keeps its bytes inside its handle, is copied to memory aligned to 8
  // bytes. `held` is the size of the memory that the slice keeps alive, if this
  // is more than the slice's size.
  static std::shared_ptr<Buffer> FromSlice(grpc::Slice slice, size_t held = 0);

  // Holds bytes, read-only, that stay valid as long as `owner` lives. `held` is
  // the size of the memory that `owner` keeps alive, if this is more than
  // `size`.
  static std::shared_ptr<Buffer> Share(const void* data, size_t size,
                                       std::shared_ptr<const void> owner,
                                       size_t held = 0);

  // Holds the caller's memory, which must stay valid until `release` runs. The
  // last holder calls `release` once, on its own thread, which may be one of
  // gRPC's. If the memory is not `writable`, a Tensor copies it before writing.
  static std::shared_ptr<Buffer> Wrap(void* data, size_t size, bool writable,
                                      std::function<void()> release);

  // Holds the caller's memory on `device`, which is not the host. `address` is
  // an address on that device. `release` is as for Wrap(). The bytes may be
  // used once the event `ready` has completed (device_stream.h), or immediately
  // if `ready` is null.
  static std::shared_ptr<Buffer> WrapDevice(
      const Device& device, uintptr_t address, size_t size, bool writable,
      std::function<void()> release,
      std::shared_ptr<const DeviceEvent> ready = nullptr);

  // Holds `size` bytes of `whole`, read-only, starting at `offset`. `whole` is
  // on the host or on a device, and contains the range. The result keeps all of
  // `whole` alive.
  static std::shared_ptr<Buffer> PartOf(std::shared_ptr<Buffer> whole,
                                        size_t offset, size_t size);

  // Holds the memory of `buffer`, to be used once the event `ready` has
  // completed. `ready` must not complete before the buffer's own ready().
  // Returns `buffer` itself if the buffer is on the host.
  static std::shared_ptr<Buffer> After(
      std::shared_ptr<Buffer> buffer, std::shared_ptr<const DeviceEvent> ready);

  // Holds the memory of `buffer`, read-only, and keeps `companion` alive for
  // the same time. A companion is, for example, a reservation that counts the
  // memory.
  static std::shared_ptr<Buffer> With(std::shared_ptr<Buffer> buffer,
                                      std::shared_ptr<const void> companion);

  // Keeps other classes from using Buffer's constructor.
  class Key;
  explicit Buffer(const Key&) : Buffer() {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Returns the address on the host, or null on a device.
  const char* data() const { return data_; }
  char* mutable_data() { return data_; }
  size_t size() const { return size_; }
  // Returns the size of the memory that this buffer keeps alive, as far as
  // known. For a part of a message, this is the size of the whole message.
  size_t held() const { return held_; }
  bool writable() const { return writable_; }
  // Returns true in a forked child if the parent made the buffer. The parent
  // may still use the memory, and may change bytes that the child has not
  // written.
  bool IsInherited() const;

  Device device() const { return at_ == nullptr ? Device() : at_->device; }
  // Returns the address on the device; 0 on the host.
  uintptr_t device_address() const { return at_ == nullptr ? 0 : at_->address; }
  // Returns the event after which the bytes may be used, or null if they may be
  // used immediately.
  std::shared_ptr<const DeviceEvent> ready() const {
    return at_ == nullptr ? nullptr : at_->ready;
  }

 private:
  friend class BufferParts;
  Buffer();

  // A location in a device's memory.
  struct Place {
    Device device;
    uintptr_t address;
    std::shared_ptr<const DeviceEvent> ready;
  };

  std::function<void()> release_;      // may be empty
  std::shared_ptr<const void> owner_;  // may be null
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t held_ = 0;
  std::unique_ptr<const Place> at_;  // null on the host
  const uint32_t fork_count_;
  bool writable_ = false;
};

// Makes buffers for many parts of one piece of memory, such as a message's
// slice. Allocates buffers in blocks, which makes each buffer cheap. A block is
// freed when all of its buffers are dropped. This class is not thread-safe. The
// buffers are used like any others.
class BufferParts {
 public:
  // Makes an empty block of buffers. See Buffer::Share() for the arguments.
  BufferParts(std::shared_ptr<const void> owner, size_t held)
      : owner_(std::move(owner)), held_(held) {}

  std::shared_ptr<Buffer> Share(const void* data, size_t size);

 private:
  struct Block;

  const std::shared_ptr<const void> owner_;
  const size_t held_;
  size_t made_ = 0;
  std::shared_ptr<Block> block_;  // the last block
};

// Returns a gRPC slice of all bytes of `buffer`, without a copy. The slice
// keeps the buffer alive. Returns an empty slice if the buffer is on a device.
grpc::Slice SliceOf(std::shared_ptr<Buffer> buffer);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_BUFFER_H_
