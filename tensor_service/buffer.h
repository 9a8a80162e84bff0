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

// A range of bytes at a fixed address. Lives until its last holder lets go: a
// tensor, or a gRPC call that still sends from it.
//
// It may lie on a device. The CPU cannot read it there: data() is null, and
// DeviceMemory copies it.
//
// Handles may be copied and dropped on any thread. The bytes are not guarded:
// only Tensor writes to them, and only while there is no other holder.
class Buffer {
 public:
  // A cache line, and the alignment that vector loads want. In bytes.
  static constexpr size_t kAlignment = 64;

  // Allocates ordinary memory, aligned to kAlignment and not initialised.
  // Returns RESOURCE_EXHAUSTED if the system has too little. For other memory
  // see allocator.h.
  static absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t size);

  // Holds the bytes of `slice`, read-only. They stay where they are, except for
  // the few bytes that a short slice keeps inside its handle: those are copied,
  // and aligned to 8 bytes. `held` is how much memory the slice keeps from
  // being freed, if that is more than its size.
  static std::shared_ptr<Buffer> FromSlice(grpc::Slice slice, size_t held = 0);

  // Holds bytes, read-only, that stay valid while `owner` does. `held` is how
  // much memory `owner` keeps from being freed, if that is more than `size`.
  static std::shared_ptr<Buffer> Share(const void* data, size_t size,
                                       std::shared_ptr<const void> owner,
                                       size_t held = 0);

  // Holds memory of the caller's. `release` runs once, when the last holder
  // lets go, on that holder's thread, which may be one of gRPC's. Until then
  // the memory must stay valid. If it is not `writable`, a Tensor copies it
  // before writing.
  static std::shared_ptr<Buffer> Wrap(void* data, size_t size, bool writable,
                                      std::function<void()> release);

  // Holds memory of the caller's on `device`, not the host, at an address of
  // that device's. `release` is as for Wrap(). `ready` says from when on the
  // bytes may be touched, see device_stream.h; null: from now on.
  static std::shared_ptr<Buffer> WrapDevice(
      const Device& device, uintptr_t address, size_t size, bool writable,
      std::function<void()> release,
      std::shared_ptr<const DeviceEvent> ready = nullptr);

  // Holds `size` bytes of `whole` from `offset` on, which it has, read-only, on
  // the host or a device. They keep all of it.
  static std::shared_ptr<Buffer> PartOf(std::shared_ptr<Buffer> whole,
                                        size_t offset, size_t size);

  // Holds the memory of `buffer`, to be touched from `ready` on. That must not
  // come before its own ready(). Returns `buffer` if that lies on the host.
  static std::shared_ptr<Buffer> After(
      std::shared_ptr<Buffer> buffer, std::shared_ptr<const DeviceEvent> ready);

  // Holds the memory of `buffer`, read-only, and `companion` for as long: a
  // reservation, for example, that counts the memory.
  static std::shared_ptr<Buffer> With(std::shared_ptr<Buffer> buffer,
                                      std::shared_ptr<const void> companion);

  // Makes Buffer's constructor unusable by others.
  class Key;
  explicit Buffer(const Key&) : Buffer() {}
  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  // Null on a device.
  const char* data() const { return data_; }
  char* mutable_data() { return data_; }
  size_t size() const { return size_; }
  // Returns how much memory this keeps from being freed, in bytes, as far as
  // that is known. For a part of a message that is the whole message.
  size_t held() const { return held_; }
  bool writable() const { return writable_; }
  // Returns true in a forked child, for a buffer that the parent had made: the
  // parent may use the memory too, and change what the child has not written.
  bool IsInherited() const;

  Device device() const { return at_ == nullptr ? Device() : at_->device; }
  // Returns the address on the device; 0 on the host.
  uintptr_t device_address() const { return at_ == nullptr ? 0 : at_->address; }
  // Returns from when on the bytes may be touched; null: from now on.
  std::shared_ptr<const DeviceEvent> ready() const {
    return at_ == nullptr ? nullptr : at_->ready;
  }

 private:
  friend class BufferParts;
  Buffer();

  // Of memory on a device.
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

// Makes buffers of many parts of one piece of memory, such as a message's
// slice. After the first few, several lie in one block of memory, which costs
// little for each, and which goes when all of them have gone. Not thread-safe;
// the buffers are as others.
class BufferParts {
 public:
  // See Buffer::Share().
  BufferParts(std::shared_ptr<const void> owner, size_t held)
      : owner_(std::move(owner)), held_(held) {}

  std::shared_ptr<Buffer> Share(const void* data, size_t size);

 private:
  struct Block;

  const std::shared_ptr<const void> owner_;
  const size_t held_;
  size_t made_ = 0;
  std::shared_ptr<Block> block_;  // the last
};

// Returns a gRPC slice of all bytes of `buffer`, which it keeps alive. Copies
// nothing. The slice is empty if they lie on a device.
grpc::Slice SliceOf(std::shared_ptr<Buffer> buffer);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_BUFFER_H_
