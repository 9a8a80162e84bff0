// Reads protobuf's wire format from the slices of a received message.

#ifndef PENSTOCK_TENSOR_SERVICE_SLICE_READER_H_
#define PENSTOCK_TENSOR_SERVICE_SLICE_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"
#include "tensor_service/buffer.h"
#include "tensor_service/device.h"

namespace penstock::tensor {

// A cursor over the bytes of one message. Positions have 64 bits, so the limit
// of 2 GiB that protobuf has does not apply.
//
// Accepts any bytes. Where they end too early or mean nothing, a function
// returns false, and the cursor may be anywhere. Functions read nothing past
// `end`, a position of at most size(). Not thread-safe.
//
// A slice may lie on a device, where the CPU cannot read it. There only
// SkipValue() and TakeBuffer() go; to any other function its bytes are bytes
// that mean nothing.
class SliceReader {
 public:
  // What gRPC reads from a socket at a time (kBigAlloc in its tcp_posix.cc). A
  // slice of a few bytes may be part of a block of this size, and does not say
  // so.
  static constexpr size_t kReceiveBlockBytes = 64 * 1024;

  explicit SliceReader(std::vector<grpc::Slice> slices);

  // Makes a reader that shares the slices of `message`. Returns
  // INVALID_ARGUMENT if gRPC cannot decompress it.
  static absl::StatusOr<SliceReader> Over(const grpc::ByteBuffer& message);

  size_t position() const { return position_; }
  size_t size() const { return size_; }

  // Reads a varint of at most ten bytes. Drops bits past the 64th, as protobuf
  // does.
  bool ReadVarint(size_t end, uint64_t* value) {
    if (position_ < end && left_ > 0 && !on_device_ &&
        *at_ < 0x80) {  // nearly all are short
      *value = *at_;
      Advance(1);
      return true;
    }
    return ReadLongVarint(end, value);
  }

  // Reads eight bytes, little-endian.
  bool ReadFixed64(size_t end, uint64_t* value);

  // Reads a field's number and wire type. Returns false for number 0.
  bool ReadTag(size_t end, uint32_t* number, uint32_t* wire_type) {
    uint64_t tag;
    if (!ReadVarint(end, &tag) || tag > 0xffffffff) return false;
    *number = static_cast<uint32_t>(tag >> 3);
    *wire_type = static_cast<uint32_t>(tag & 7);
    return *number != 0;
  }

  // Reads the length of a length-delimited field, and returns the position
  // where the field ends.
  bool ReadLength(size_t end, size_t* field_end) {
    uint64_t length;
    if (!ReadVarint(end, &length) || length > end - position_) return false;
    *field_end = position_ + static_cast<size_t>(length);
    return true;
  }

  // Skips the value of an unknown field, nested groups included.
  bool SkipValue(size_t end, uint32_t number, uint32_t wire_type);

  // Whether all bytes up to `end` lie on the host.
  bool IsOnHost(size_t end) const;

  // Appends the bytes up to `end` to `out`.
  bool AppendTo(size_t end, std::string* out);

  // Copies the bytes up to `end` to `to`, which has room for them.
  bool CopyTo(size_t end, char* to);

  // Returns the bytes up to `end`, and stays where it is; or an empty view if
  // they do not lie in one slice. They live as long as this, and as what
  // ShareBuffer() makes of them.
  absl::string_view PeekTo(size_t end);

  // Returns a buffer of bytes that PeekTo() has just shown, as TakeBuffer()
  // does.
  std::shared_ptr<Buffer> ShareBuffer(absl::string_view bytes);

  // Goes to `end`, up to which PeekTo() has just shown the bytes.
  void SkipTo(size_t end) { Advance(end - position_); }

  // The number of slices of the message, where one lies, and its bytes, which
  // only the host's can be read of.
  size_t slices() const { return slices_.size(); }
  Device device(size_t i) const {
    return devices_.empty() ? Device() : devices_[i];
  }
  absl::string_view slice(size_t i) const {
    return {reinterpret_cast<const char*>(slices_[i].begin()),
            slices_[i].size()};
  }
  // Moves what is yet to be read of that slice, which lies on the host, to the
  // heap; buffers that share it stay where they are. Returns RESOURCE_EXHAUSTED
  // if there is no memory.
  absl::Status MoveAway(size_t i);

  // Whether the bytes up to `end` are those at `place`, in one slice. Skips
  // them then.
  bool SkipIfAt(size_t end, const char* place);

  // Returns the bytes up to `end`. Shares the message's memory if one slice
  // holds them all, on the host or a device, and else copies them to aligned
  // memory of the heap, from devices too.
  // Buffer::held() of a shared buffer is the size of the message, and at least
  // kReceiveBlockBytes: a transport may free a message's slices together only.
  // Returns INVALID_ARGUMENT if `end` is out of range, RESOURCE_EXHAUSTED if
  // there is no memory for the copy, and the errors of DeviceMemory.
  absl::StatusOr<std::shared_ptr<Buffer>> TakeBuffer(size_t end);

 private:
  bool ReadLongVarint(size_t end, uint64_t* value);
  bool Skip(size_t end, size_t count);
  bool SkipGroup(size_t end, uint32_t number);
  // Of bytes on the host.
  void CopyOut(char* to, size_t count);
  // Of bytes anywhere. Waits once, for all that lie on devices.
  absl::Status CopyFromAnywhere(char* to, size_t count);
  // Moves on by `count` bytes, at most left_.
  void Advance(size_t count) {
    at_ += count;
    left_ -= count;
    position_ += count;
    if (left_ == 0) NextSlice();
  }
  void NextSlice();
  // Returns the current place in shared_, which it makes if there is none.
  const uint8_t* SharedAt();
  // Returns `count` bytes from the current place on, in a slice on a device.
  std::shared_ptr<Buffer> OnDevice(size_t count);

  std::vector<grpc::Slice> slices_;
  std::vector<Device> devices_;  // of each slice; empty if all are the host's
  size_t next_slice_ = 0;
  // The current one, for the buffers that share it. Null if none does. A share
  // of all slices would keep the transport from freeing the others.
  std::shared_ptr<const grpc::Slice> shared_;
  absl::optional<BufferParts> parts_;  // of shared_, set with it
  bool on_device_ = false;             // the current one
  std::shared_ptr<Buffer> whole_;  // all of it, there; null if none shares it
  const uint8_t* at_ = nullptr;    // within it
  size_t left_ = 0;                // from there; 0 only at the message's end
  size_t position_ = 0;
  size_t size_ = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_SLICE_READER_H_
