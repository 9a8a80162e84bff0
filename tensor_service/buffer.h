// The memory of a tensor: shared, reference-counted, of any origin.

#ifndef PENSTOCK_TENSOR_SERVICE_BUFFER_H_
#define PENSTOCK_TENSOR_SERVICE_BUFFER_H_

#include <cstddef>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "grpcpp/support/slice.h"

namespace penstock::tensor {

// A run of bytes that lives as long as anybody holds it: a tensor, or a gRPC
// call that still sends from it. Its address never changes.
//
// Thread safety: the handle counts are atomic; the bytes are not guarded. Only
// Tensor writes to them, and only while nobody else holds the buffer.
class Buffer {
 public:
  // What vector instructions like, and one cache line.
  static constexpr size_t kAlignment = 64;

  // Fresh memory, aligned to kAlignment and not initialised. RESOURCE_EXHAUSTED
  // where the system has none left.
  static absl::StatusOr<std::shared_ptr<Buffer>> Allocate(size_t size);

  // The bytes of `slice`, which stay where they are, unless gRPC keeps so few
  // of them inside the handle itself. Never writable. `held`: as held(), where
  // that is more than the slice.
  static std::shared_ptr<Buffer> FromSlice(grpc::Slice slice, size_t held = 0);

  // Memory of the caller's, who calls it writable or not; `release` runs once,
  // on whichever thread drops the last reference, which may be one of gRPC's.
  static std::shared_ptr<Buffer> Wrap(void* data, size_t size, bool writable,
                                      std::function<void()> release);

  ~Buffer();
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  const char* data() const { return data_; }
  char* mutable_data() { return data_; }
  size_t size() const { return size_; }
  // How much memory this keeps from being freed, as far as anybody knows: that
  // of the message, for a part of one.
  size_t held() const { return held_; }
  bool writable() const { return writable_; }

 private:
  Buffer() = default;

  grpc::Slice slice_;              // FromSlice only
  std::function<void()> release_;  // may be empty
  char* data_ = nullptr;
  size_t size_ = 0;
  size_t held_ = 0;
  bool writable_ = false;
};

// A gRPC slice over bytes [0, size) of `buffer`, which it keeps alive. Copies
// nothing.
grpc::Slice SliceOf(std::shared_ptr<Buffer> buffer);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_BUFFER_H_
