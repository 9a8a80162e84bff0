// Reads protobuf's wire format from the slices of a received message.

#ifndef PENSTOCK_TENSOR_SERVICE_SLICE_READER_H_
#define PENSTOCK_TENSOR_SERVICE_SLICE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/buffer.h"

namespace penstock::tensor {

// A cursor over the bytes of one message. Positions are 64 bits wide, so
// protobuf's limit of 2 GiB does not apply. Every function is total: it returns
// false, with the cursor anywhere, where the bytes end too early or mean
// nothing; nothing is read past `end`, a position that the caller has checked
// against size(). Not thread-safe.
class SliceReader {
 public:
  // What gRPC reads from a socket at a time: a slice of a few bytes may be part
  // of as many, which nothing tells (kBigAlloc in its tcp_posix.cc).
  static constexpr size_t kReceiveBlockBytes = 64 * 1024;

  explicit SliceReader(std::vector<grpc::Slice> slices);

  // Shares the slices of `message`. INVALID_ARGUMENT where gRPC cannot
  // decompress it.
  static absl::StatusOr<SliceReader> Over(const grpc::ByteBuffer& message);

  size_t position() const { return position_; }
  size_t size() const { return size_; }

  // At most ten bytes, as protobuf reads it: bits past the 64th are lost.
  bool ReadVarint(size_t end, uint64_t* value);

  // A field's number and wire type. False for number 0.
  bool ReadTag(size_t end, uint32_t* number, uint32_t* wire_type);

  // The length of a length-delimited field, as the position where it ends.
  bool ReadLength(size_t end, size_t* field_end);

  // The value of an unknown field, nested groups included.
  bool SkipValue(size_t end, uint32_t number, uint32_t wire_type);

  // Appends the bytes up to `end` to `out`.
  bool AppendTo(size_t end, std::string* out);

  // The bytes up to `end`: a reference into the message where one slice holds
  // them all, else an aligned copy of them. The reference is said to hold that
  // slice, or kReceiveBlockBytes.
  absl::StatusOr<std::shared_ptr<Buffer>> TakeBuffer(size_t end);

 private:
  bool ReadByte(size_t end, uint8_t* byte);
  bool Skip(size_t end, size_t count);
  bool SkipGroup(size_t end, uint32_t number);
  void CopyOut(char* to, size_t count);
  void NextSliceIfDone();

  std::vector<grpc::Slice> slices_;
  size_t slice_ = 0;   // index of the current one
  size_t offset_ = 0;  // within it
  size_t position_ = 0;
  size_t size_ = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_SLICE_READER_H_
