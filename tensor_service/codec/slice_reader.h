// Reads protobuf's wire format from the slices of a received message.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_SLICE_READER_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_SLICE_READER_H_

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

// A cursor over the bytes of one message. Positions have 64 bits, so protobuf's
// limit of 2 GiB does not apply.
//
// Accepts any bytes. If the bytes end too early or are malformed, a function
// returns false and leaves the cursor at an undefined position. No function
// reads past `end`, a position of at most size(). Not thread-safe.
//
// A slice may be on a device, where the CPU cannot read it. Only SkipValue()
// and TakeBuffer() handle the bytes of such a slice; all other functions treat
// them as malformed.
class SliceReader {
 public:
  // The number of bytes that gRPC reads from a socket at a time (kBigAlloc in
  // tcp_posix.cc). Even a slice of a few bytes may be part of a block of this
  // size.
  static constexpr size_t kReceiveBlockBytes = 64 * 1024;

  explicit SliceReader(std::vector<grpc::Slice> slices);

  // Makes a reader that shares the slices of `message`. Returns
  // INVALID_ARGUMENT if gRPC cannot decompress the message.
  static absl::StatusOr<SliceReader> Over(const grpc::ByteBuffer& message);

  size_t position() const { return position_; }
  size_t size() const { return size_; }

  // Reads a varint of at most ten bytes. Drops bits after the 64th, like
  // protobuf.
  bool ReadVarint(size_t end, uint64_t* value) {
    if (position_ < end && left_ > 0 && !on_device_ &&
        *at_ < 0x80) {  // most varints are short
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

  // Reads the length of a length-delimited field. Sets `*field_end` to the
  // position after the field.
  bool ReadLength(size_t end, size_t* field_end) {
    uint64_t length;
    if (!ReadVarint(end, &length) || length > end - position_) return false;
    *field_end = position_ + static_cast<size_t>(length);
    return true;
  }

  // Skips the value of an unknown field, nested groups included.
  bool SkipValue(size_t end, uint32_t number, uint32_t wire_type);

  // Returns true if all bytes before `end` are on the host.
  bool IsOnHost(size_t end) const;

  // Appends the bytes before `end` to `out`.
  bool AppendTo(size_t end, std::string* out);

  // Copies the bytes before `end` to `to`, which must have room for them.
  bool CopyTo(size_t end, char* to);

  // Returns the bytes before `end` without moving the cursor, or an empty view
  // if the bytes are not in one slice. The bytes live as long as this reader
  // and the results of ShareBuffer().
  absl::string_view PeekTo(size_t end);

  // Returns a buffer of bytes that PeekTo() has just returned, like
  // TakeBuffer().
  std::shared_ptr<Buffer> ShareBuffer(absl::string_view bytes);

  // Moves the cursor to `end`, the argument of the preceding PeekTo().
  void SkipTo(size_t end) { Advance(end - position_); }

  // Return the number of slices, and the location and the bytes of a slice. The
  // bytes are readable only on the host.
  size_t slices() const { return slices_.size(); }
  Device device(size_t i) const {
    return devices_.empty() ? Device() : devices_[i];
  }
  absl::string_view slice(size_t i) const {
    return {reinterpret_cast<const char*>(slices_[i].begin()),
            slices_[i].size()};
  }
  // Moves the unread part of slice `i`, which is on the host, to the heap.
  // Buffers that share the slice keep the old memory. Returns
  // RESOURCE_EXHAUSTED if there is no memory.
  absl::Status MoveAway(size_t i);

  // Skips the bytes before `end` and returns true if they are in one slice and
  // begin at `place`. Otherwise returns false.
  bool SkipIfAt(size_t end, const char* place);

  // Returns the bytes before `end`. Shares the message's memory if one slice,
  // on the host or on a device, holds all of them. Otherwise copies them, even
  // from devices, to aligned memory of the heap.
  //
  // Buffer::held() of a shared buffer is the size of the message, and at least
  // kReceiveBlockBytes: a transport may free a message's slices only together.
  // Returns INVALID_ARGUMENT if `end` is out of range, RESOURCE_EXHAUSTED if
  // there is no memory for the copy, and the errors of DeviceMemory.
  absl::StatusOr<std::shared_ptr<Buffer>> TakeBuffer(size_t end);

 private:
  bool ReadLongVarint(size_t end, uint64_t* value);
  bool Skip(size_t end, size_t count);
  bool SkipGroup(size_t end, uint32_t number);
  // Copies bytes on the host.
  void CopyOut(char* to, size_t count);
  // Copies bytes on the host or on devices. Waits once for all devices.
  absl::Status CopyFromAnywhere(char* to, size_t count);
  // Advances by `count` bytes, at most left_.
  void Advance(size_t count) {
    at_ += count;
    left_ -= count;
    position_ += count;
    if (left_ == 0) NextSlice();
  }
  void NextSlice();
  // Returns the current position in shared_, which is made if necessary.
  const uint8_t* SharedAt();
  // Returns the next `count` bytes of a slice on a device.
  std::shared_ptr<Buffer> OnDevice(size_t count);

  std::vector<grpc::Slice> slices_;
  // One device per slice. Empty if all slices are on the host.
  std::vector<Device> devices_;
  size_t next_slice_ = 0;
  // A shared copy of the current slice, if buffers share it; otherwise null.
  // Other slices are not shared, so that the transport can free slices that no
  // buffer uses.
  std::shared_ptr<const grpc::Slice> shared_;
  // Parts of shared_, set together with shared_.
  absl::optional<BufferParts> parts_;
  bool on_device_ = false;  // of the current slice
  // The whole current slice, if it is on a device. Null if no buffer shares it.
  std::shared_ptr<Buffer> whole_;
  const uint8_t* at_ = nullptr;  // within the current slice
  size_t left_ = 0;              // bytes from at_; 0 only at the message's end
  size_t position_ = 0;
  size_t size_ = 0;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_SLICE_READER_H_
