#include "tensor_service/codec/slice_reader.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/wire_format_lite.h"
#include "tensor_service/device_memory.h"

namespace penstock::tensor {
namespace {

using google::protobuf::internal::WireFormatLite;

// Limits the depth of groups. The same limit as Protobuf's own for nested
// messages and groups.
constexpr size_t kMaxGroupDepth = 100;

// Returns the device of each slice, or nothing if all are on the host.
std::vector<Device> DevicesOf(const std::vector<grpc::Slice>& slices) {
  std::vector<Device> devices;
  const DeviceMemory* const memory = GetDeviceMemory();
  if (memory == nullptr) return devices;
  for (size_t i = 0; i < slices.size(); ++i) {
    const Device device = memory->DeviceOfSlice(slices[i].begin());
    if (device.is_host()) continue;
    devices.resize(slices.size());
    devices[i] = device;
  }
  return devices;
}

}  // namespace

SliceReader::SliceReader(std::vector<grpc::Slice> slices)
    : slices_(std::move(slices)), devices_(DevicesOf(slices_)) {
  for (const grpc::Slice& slice : slices_) size_ += slice.size();
  NextSlice();
}

absl::StatusOr<SliceReader> SliceReader::Over(const grpc::ByteBuffer& message) {
  std::vector<grpc::Slice> slices;
  if (message.Valid()) {
    grpc::Status status = message.Dump(&slices);
    if (!status.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("read message: ", status.error_message()));
    }
  }
  return SliceReader(std::move(slices));
}

void SliceReader::NextSlice() {
  shared_.reset();
  whole_.reset();
  while (left_ == 0 && next_slice_ < slices_.size()) {
    at_ = slices_[next_slice_].begin();
    left_ = slices_[next_slice_].size();
    on_device_ = !device(next_slice_).is_host();
    ++next_slice_;
  }
}

bool SliceReader::ReadLongVarint(size_t end, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    if (position_ >= end || left_ == 0 || on_device_) return false;
    const uint8_t byte = *at_;
    Advance(1);
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool SliceReader::ReadFixed64(size_t end, uint64_t* value) {
  if (position_ > end || end - position_ < sizeof(*value)) return false;
  if (!IsOnHost(position_ + sizeof(*value))) return false;
  CopyOut(reinterpret_cast<char*>(value), sizeof(*value));
  return true;
}

bool SliceReader::SkipValue(size_t end, uint32_t number, uint32_t wire_type) {
  uint64_t ignored;
  size_t field_end;
  switch (wire_type) {
    case WireFormatLite::WIRETYPE_VARINT:
      return ReadVarint(end, &ignored);
    case WireFormatLite::WIRETYPE_FIXED64:
      return Skip(end, 8);
    case WireFormatLite::WIRETYPE_LENGTH_DELIMITED:
      return ReadLength(end, &field_end) && Skip(end, field_end - position_);
    case WireFormatLite::WIRETYPE_START_GROUP:
      return SkipGroup(end, number);
    case WireFormatLite::WIRETYPE_FIXED32:
      return Skip(end, 4);
    default:  // a group's end without its start, or an unassigned type
      return false;
  }
}

bool SliceReader::SkipGroup(size_t end, uint32_t number) {
  std::vector<uint32_t> open = {number};
  while (!open.empty()) {
    uint32_t inner;
    uint32_t wire_type;
    if (!ReadTag(end, &inner, &wire_type)) return false;
    if (wire_type == WireFormatLite::WIRETYPE_START_GROUP) {
      if (open.size() == kMaxGroupDepth) return false;
      open.push_back(inner);
    } else if (wire_type == WireFormatLite::WIRETYPE_END_GROUP) {
      if (inner != open.back()) return false;
      open.pop_back();
    } else if (!SkipValue(end, inner, wire_type)) {
      return false;
    }
  }
  return true;
}

bool SliceReader::Skip(size_t end, size_t count) {
  if (position_ > end || count > end - position_) return false;
  while (count > 0) {
    const size_t here = std::min(count, left_);
    Advance(here);
    count -= here;
  }
  return true;
}

void SliceReader::CopyOut(char* to, size_t count) {
  while (count > 0) {
    const size_t here = std::min(count, left_);
    memcpy(to, at_, here);
    Advance(here);
    to += here;
    count -= here;
  }
}

bool SliceReader::IsOnHost(size_t end) const {
  if (devices_.empty() || end <= position_) return true;
  if (on_device_) return false;
  size_t at = position_ + left_;
  for (size_t i = next_slice_; i < slices_.size() && at < end; ++i) {
    if (slices_[i].size() > 0 && !devices_[i].is_host()) return false;
    at += slices_[i].size();
  }
  return true;
}

absl::Status SliceReader::CopyFromAnywhere(char* to, size_t count) {
  std::vector<std::shared_ptr<Buffer>> parts;
  std::vector<CopyToHost> copies;
  while (count > 0) {
    const size_t here = std::min(count, left_);
    if (on_device_) {
      parts.push_back(OnDevice(here));
      copies.push_back({parts.back().get(), 0, here, to});
    } else {
      memcpy(to, at_, here);
    }
    Advance(here);
    to += here;
    count -= here;
  }
  if (copies.empty()) return absl::OkStatus();
  absl::StatusOr<DeviceMemory*> memory =
      NeedDeviceMemory("read message on a device");
  return memory.ok() ? (*memory)->Copy(copies) : memory.status();
}

bool SliceReader::AppendTo(size_t end, std::string* out) {
  if (end > size_ || position_ > end || !IsOnHost(end)) return false;
  const size_t count = end - position_;
  if (count <= left_) {  // avoids zero-filling the string
    if (count == 0) return true;
    out->append(reinterpret_cast<const char*>(at_), count);
    Advance(count);
    return true;
  }
  const size_t before = out->size();
  out->resize(before + count);
  CopyOut(&(*out)[before], count);
  return true;
}

const uint8_t* SliceReader::SharedAt() {
  const grpc::Slice& current = slices_[next_slice_ - 1];
  if (shared_ == nullptr) {
    shared_ = std::make_shared<grpc::Slice>(current);
    parts_.emplace(shared_, std::max(size_, kReceiveBlockBytes));
  }
  // Returns an address in the shared copy of the slice. A short slice keeps its
  // bytes in its handle, so the copy has its own bytes.
  return shared_->begin() + (at_ - current.begin());
}

std::shared_ptr<Buffer> SliceReader::OnDevice(size_t count) {
  const grpc::Slice& current = slices_[next_slice_ - 1];
  if (whole_ == nullptr) {
    whole_ = Buffer::WrapDevice(
        devices_[next_slice_ - 1], reinterpret_cast<uintptr_t>(current.begin()),
        current.size(), /*writable=*/false, [held = current] {});
  }
  return Buffer::PartOf(whole_, at_ - current.begin(), count);
}

absl::string_view SliceReader::PeekTo(size_t end) {
  if (on_device_ || end <= position_ || end - position_ > left_) {
    return absl::string_view();
  }
  return absl::string_view(reinterpret_cast<const char*>(SharedAt()),
                           end - position_);
}

std::shared_ptr<Buffer> SliceReader::ShareBuffer(absl::string_view bytes) {
  return parts_->Share(bytes.data(), bytes.size());
}

absl::Status SliceReader::MoveAway(size_t i) {
  if (i + 1 < next_slice_) return absl::OkStatus();
  const absl::string_view bytes = slice(i);
  absl::StatusOr<std::shared_ptr<Buffer>> copy = Buffer::Allocate(bytes.size());
  if (!copy.ok()) return copy.status();
  memcpy((*copy)->mutable_data(), bytes.data(), bytes.size());
  const size_t size = bytes.size();
  slices_[i] = SliceOf(*std::move(copy));
  if (i + 1 == next_slice_) {
    shared_.reset();
    at_ = slices_[i].begin() + (size - left_);
  }
  return absl::OkStatus();
}

bool SliceReader::SkipIfAt(size_t end, const char* place) {
  if (on_device_ || end > size_ || position_ > end || end - position_ > left_ ||
      reinterpret_cast<const char*>(at_) != place) {
    return false;
  }
  Advance(end - position_);
  return true;
}

bool SliceReader::CopyTo(size_t end, char* to) {
  if (end > size_ || position_ > end || !IsOnHost(end)) return false;
  CopyOut(to, end - position_);
  return true;
}

absl::StatusOr<std::shared_ptr<Buffer>> SliceReader::TakeBuffer(size_t end) {
  if (end > size_ || position_ > end) {
    return absl::InvalidArgumentError("read message: field past its end");
  }
  const size_t count = end - position_;
  if (count > 0 && count <= left_) {
    auto buffer = on_device_ ? OnDevice(count) : ShareBuffer(PeekTo(end));
    Advance(count);
    return buffer;
  }
  absl::StatusOr<std::shared_ptr<Buffer>> copy = Buffer::Allocate(count);
  if (!copy.ok()) return copy;
  absl::Status status = CopyFromAnywhere((*copy)->mutable_data(), count);
  if (!status.ok()) return status;
  return copy;
}

}  // namespace penstock::tensor
