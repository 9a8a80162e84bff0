// A pool of shared memory for large messages, which shm carries without a copy.
// penstock.h includes this header.

#ifndef PENSTOCK_ALLOCATOR_H_
#define PENSTOCK_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "grpcpp/support/slice.h"

namespace penstock {

// Allocates from a pool of shared memory that peers of the same user can read:
//
//   penstock::Allocator::Buffer buffer = penstock::Allocator::Allocate(bytes);
//   if (!buffer) ...  // out of memory
//   Fill(buffer.data(), buffer.size());
//   grpc::Slice slice = buffer.ToSlice();
//   grpc::ByteBuffer message(&slice, 1);
//
// Over shm, such a slice is not copied: the receiver gets a slice of the same
// memory. The same is true for a part of such a slice, of 4 KiB or more. A
// message may contain such slices and others. Other paths send such a slice
// like any slice.
//
// Allocating and freeing take a lock briefly. When the pool has to grow,
// Allocate() takes about 50 ms per 256 MiB.
//
// PENSTOCK_SHM_ARENA_MIB limits the pool. The default is 1 GiB, or a quarter of
// the memory of the machine or control group if that is less; RaiseLimit()
// changes the default. Messages that are copied into the pool count too.
// Buffers are ordinary memory if the pool is full, or if the system has no
// shared memory. Thread-safe.
class Allocator {
 public:
  // A reference to memory that is aligned to 64 bytes. Copies share the memory.
  // The last reference frees the memory: references are buffers, slices,
  // messages in flight, and peers that still use the memory.
  class Buffer {
   public:
    Buffer() = default;

    explicit operator bool() const { return data_ != nullptr; }
    uint8_t* data() const { return data_.get(); }
    size_t size() const { return size_; }
    // Returns true if the memory is from the pool, false if it is ordinary
    // memory.
    bool is_pooled() const { return is_pooled_; }

    // Returns a slice that shares the memory. Once it is sent, do not write to
    // the memory until is_shared() is false: a peer may be reading it.
    grpc::Slice ToSlice() const;
    // Returns true if anything else shares the memory: another buffer, a slice,
    // a message in flight, or a peer that still uses the memory. May stay true
    // after the peer has returned the memory, until the next traffic of the
    // connection.
    bool is_shared() const { return data_.use_count() > 1; }

   private:
    friend class Allocator;

    std::shared_ptr<uint8_t> data_;
    size_t size_ = 0;
    bool is_pooled_ = false;
  };

  // Allocates `bytes` bytes, uninitialised. Returns an empty buffer, which
  // converts to false, if the process is out of memory.
  static Buffer Allocate(size_t bytes);

  // Raises the pool's limit to `bytes`, for a program that knows how much it
  // will allocate. Does nothing if the limit is higher, or if
  // PENSTOCK_SHM_ARENA_MIB sets it. Returns the limit. Takes no memory: the
  // pool still grows as it is used.
  static uint64_t RaiseLimit(uint64_t bytes);
};

}  // namespace penstock

#endif  // PENSTOCK_ALLOCATOR_H_
