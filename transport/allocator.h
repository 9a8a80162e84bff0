// Memory for large messages that shared memory carries without a copy.
// Re-exported by penstock.h.

#ifndef PENSTOCK_TRANSPORT_ALLOCATOR_H_
#define PENSTOCK_TRANSPORT_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "grpcpp/support/slice.h"

namespace penstock {

// Gives out parts of the pool that peers of this process's user can read:
//
//   penstock::Allocator::Buffer buffer = penstock::Allocator::Allocate(bytes);
//   if (!buffer) ...  // the machine has no memory
//   Fill(buffer.data(), buffer.size());
//   grpc::Slice slice = buffer.ToSlice();
//   grpc::ByteBuffer message(&slice, 1);
//
// A message that is one such slice, or a part of one, goes over shm without
// being copied: the receiver's slice is this memory. Over any other path it is
// sent like any other. Each Allocate() and each release takes a lock for a
// moment; where the pool has to grow, about 50 ms per 256 MiB.
//
// The pool holds 1 GiB, or a quarter of the machine's or the control group's
// memory if that is less, and messages that are copied into it take from it
// too. Where it has no room, or there is no shared memory, buffers are ordinary
// memory. Thread-safe.
class Allocator {
 public:
  // A share in a piece of memory, aligned to 64 bytes; copies share it. It is
  // given back with the last share: buffers, slices, and what peers read.
  class Buffer {
   public:
    Buffer() = default;

    explicit operator bool() const { return data_ != nullptr; }
    uint8_t* data() const { return data_.get(); }
    size_t size() const { return size_; }
    // Whether it is of the pool.
    bool is_pooled() const { return is_pooled_; }

    // From now on the bytes must not change until is_shared() is false: a peer
    // may be reading them.
    grpc::Slice ToSlice() const;
    // Whether anything but this buffer shares the memory: another buffer, a
    // slice, a message under way, or a peer that has not let go of it. What a
    // peer gave back is noticed with the connection's next traffic.
    bool is_shared() const { return data_.use_count() > 1; }

   private:
    friend class Allocator;

    std::shared_ptr<uint8_t> data_;
    size_t size_ = 0;
    bool is_pooled_ = false;
  };

  // Not cleared. Empty, i.e. false, where there is no memory at all.
  static Buffer Allocate(size_t bytes);
};

}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_ALLOCATOR_H_
