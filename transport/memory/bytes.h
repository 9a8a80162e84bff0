// Byte ranges that keep their memory alive.

#ifndef PENSTOCK_TRANSPORT_MEMORY_BYTES_H_
#define PENSTOCK_TRANSPORT_MEMORY_BYTES_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace penstock {
namespace memory {

// A read-only range and a share in whatever owns it. Copies are cheap and
// share; the memory is given back, on whatever thread, with the last of them.
struct Bytes {
  const uint8_t* data = nullptr;
  size_t size = 0;
  std::shared_ptr<const void> owner;

  absl::Span<const uint8_t> span() const { return {data, size}; }
  // A part that shares the owner. Needs offset + length <= size.
  Bytes Part(size_t offset, size_t length) const {
    return Bytes{data + offset, length, owner};
  }
};

// A private, writable block of heap memory, aligned for any tensor (64 bytes).
struct Block {
  std::shared_ptr<uint8_t> data;
  size_t size = 0;

  absl::Span<uint8_t> span() const { return {data.get(), size}; }
  Bytes AsBytes() const { return Bytes{data.get(), size, data}; }
};

// RESOURCE_EXHAUSTED where the heap has no `size` bytes; never aborts, as a
// peer may have chosen the size.
absl::StatusOr<Block> AllocateBlock(size_t size);

// A copy that owns itself, aligned like a Block from kAlignedBytes on; smaller
// ones cost less. RESOURCE_EXHAUSTED as above.
constexpr size_t kAlignedBytes = 1024;
absl::StatusOr<Bytes> CopyBytes(absl::Span<const uint8_t> bytes);

// `bytes` with an owner: a copy, where they have none.
absl::StatusOr<Bytes> Own(Bytes bytes);

// The bytes of one message, in order, in as many pieces as it came in.
class Payload {
 public:
  // Most messages are in one piece.
  using Pieces = absl::InlinedVector<Bytes, 1>;

  Payload() = default;
  explicit Payload(Bytes bytes) { Append(std::move(bytes)); }

  void Append(Bytes bytes);
  size_t size() const { return size_; }
  const Pieces& pieces() const { return pieces_; }

  // The pieces that cover [offset, offset + length), sharing their owners.
  // Needs offset + length <= size().
  std::vector<Bytes> Part(size_t offset, size_t length) const;
  // Copies everything to `out`, which must hold size() bytes.
  void CopyTo(uint8_t* out) const;

 private:
  Pieces pieces_;
  size_t size_ = 0;
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_BYTES_H_
