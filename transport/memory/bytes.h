// Byte ranges that keep their memory alive.

#ifndef PENSTOCK_TRANSPORT_MEMORY_BYTES_H_
#define PENSTOCK_TRANSPORT_MEMORY_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace memory {

class DeviceAccess;

// A read-only range of bytes, and a reference to the range's owner. Copies are
// cheap and share the owner. The last copy releases the owner, on any thread.
struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;
  // The access to memory that the CPU cannot touch. Null if the CPU can touch
  // the memory. The bytes are ready: the creator of this object has waited for
  // the device.
  DeviceAccess* device = nullptr;

  absl::Span<const uint8_t> span() const { return {data, size}; }
  // Returns a part, which shares the owner. Requires offset + length <= size.
  Bytes Part(size_t offset, size_t length) const {
    return Bytes{data + offset, length, owner, device};
  }
  // Copies all bytes to `out`, on the host. Blocks, and may fail, only if the
  // bytes are on a device.
  absl::Status CopyTo(uint8_t* out) const;
};

// A writable block of heap memory, aligned for any tensor (64 bytes). Copies
// share the memory, and the last one frees it.
struct Block {
  std::shared_ptr<uint8_t> data;
  size_t size = 0;

  absl::Span<uint8_t> span() const { return {data.get(), size}; }
  Bytes AsBytes() const { return Bytes{data.get(), size, data}; }
};

// Allocates a block of `size` bytes, uninitialised. Returns RESOURCE_EXHAUSTED
// if the heap has too little memory. Never aborts, since a peer may have chosen
// the size.
absl::StatusOr<Block> AllocateBlock(size_t size);

// The size, in bytes, from which a copy is aligned like a Block. Smaller copies
// are not aligned, and cost less.
constexpr size_t kAlignedBytes = 1024;
// Copies `bytes` to memory that the result owns. Returns RESOURCE_EXHAUSTED as
// AllocateBlock() does.
absl::StatusOr<Bytes> CopyBytes(absl::Span<const uint8_t> bytes);

// Returns `bytes` if they have an owner, or else a copy with an owner.
absl::StatusOr<Bytes> Own(Bytes bytes);

// Returns `bytes` if they are on the host. Otherwise returns a copy in host
// memory. The copy is allocated by the function of SetStagingMemory(), or on
// the heap.
absl::StatusOr<Bytes> ToHost(Bytes bytes);

// Sets the function by which ToHost() allocates, so that a fabric can send
// ToHost()'s result without another copy. `allocate` returns null if it has no
// memory, and is called on any thread. Thread-safe.
void SetStagingMemory(std::shared_ptr<uint8_t> (*allocate)(size_t bytes));

// The bytes of one message, in order, in the pieces in which they arrived.
// Copies share the pieces' owners.
class Payload {
 public:
  // One piece is stored inline, because most messages have one piece.
  using Pieces = absl::InlinedVector<Bytes, 1>;

  Payload() = default;
  explicit Payload(Bytes bytes) { Append(std::move(bytes)); }

  void Append(Bytes bytes);
  size_t size() const { return size_; }
  const Pieces& pieces() const { return pieces_; }
  // Returns true if the CPU can touch all bytes.
  bool on_host() const;

  // Returns the pieces that cover [offset, offset + length). The pieces share
  // the payload's owners. Requires offset + length <= size().
  std::vector<Bytes> Part(size_t offset, size_t length) const;
  // Copies all bytes to `out`, which has room for size() of them. Requires
  // on_host().
  void CopyTo(uint8_t* out) const;
  // Copies all bytes to `out`, from devices too. May fail.
  absl::Status CopyFromAnywhereTo(uint8_t* out) const;

 private:
  Pieces pieces_;
  size_t size_ = 0;
};

// Returns the payload with ToHost() applied to each piece.
absl::StatusOr<Payload> ToHost(const Payload& payload);

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_BYTES_H_
