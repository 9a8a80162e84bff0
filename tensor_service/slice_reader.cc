#include "tensor_service/slice_reader.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "google/protobuf/wire_format_lite.h"

namespace penstock::tensor {
namespace {

using google::protobuf::internal::WireFormatLite;

// Protobuf's own default for nested messages and groups.
constexpr size_t kMaxGroupDepth = 100;

}  // namespace

SliceReader::SliceReader(std::vector<grpc::Slice> slices)
    : slices_(std::move(slices)) {
  for (const grpc::Slice& slice : slices_) size_ += slice.size();
  NextSliceIfDone();
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

void SliceReader::NextSliceIfDone() {
  while (slice_ < slices_.size() && offset_ == slices_[slice_].size()) {
    ++slice_;
    offset_ = 0;
  }
}

bool SliceReader::ReadByte(size_t end, uint8_t* byte) {
  if (position_ >= end || position_ >= size_) return false;
  *byte = slices_[slice_].begin()[offset_];
  ++offset_;
  ++position_;
  NextSliceIfDone();
  return true;
}

bool SliceReader::ReadVarint(size_t end, uint64_t* value) {
  *value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    uint8_t byte;
    if (!ReadByte(end, &byte)) return false;
    *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
    if ((byte & 0x80) == 0) return true;
  }
  return false;
}

bool SliceReader::ReadTag(size_t end, uint32_t* number, uint32_t* wire_type) {
  uint64_t tag;
  if (!ReadVarint(end, &tag)) return false;
  if (tag > std::numeric_limits<uint32_t>::max()) return false;
  *number = static_cast<uint32_t>(tag >> 3);
  *wire_type = static_cast<uint32_t>(tag & 7);
  return *number != 0;
}

bool SliceReader::ReadLength(size_t end, size_t* field_end) {
  uint64_t length;
  if (!ReadVarint(end, &length)) return false;
  if (length > end - position_) return false;
  *field_end = position_ + static_cast<size_t>(length);
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
    default:  // an end without a start, or one of the two types never assigned
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
  position_ += count;
  while (count > 0) {
    size_t here = std::min(count, slices_[slice_].size() - offset_);
    offset_ += here;
    count -= here;
    NextSliceIfDone();
  }
  return true;
}

void SliceReader::CopyOut(char* to, size_t count) {
  position_ += count;
  while (count > 0) {
    size_t here = std::min(count, slices_[slice_].size() - offset_);
    memcpy(to, slices_[slice_].begin() + offset_, here);
    to += here;
    offset_ += here;
    count -= here;
    NextSliceIfDone();
  }
}

bool SliceReader::AppendTo(size_t end, std::string* out) {
  if (end > size_ || position_ > end) return false;
  size_t before = out->size();
  out->resize(before + (end - position_));
  CopyOut(&(*out)[before], end - position_);
  return true;
}

absl::StatusOr<std::shared_ptr<Buffer>> SliceReader::TakeBuffer(size_t end) {
  if (end > size_ || position_ > end) {
    return absl::InvalidArgumentError("read message: field past its end");
  }
  size_t count = end - position_;
  if (count > 0 && count <= slices_[slice_].size() - offset_) {
    const grpc::Slice& slice = slices_[slice_];
    auto buffer = Buffer::FromSlice(slice.sub(offset_, offset_ + count),
                                    std::max(size_, kReceiveBlockBytes));
    Skip(end, count);
    return buffer;
  }
  absl::StatusOr<std::shared_ptr<Buffer>> copy = Buffer::Allocate(count);
  if (copy.ok()) CopyOut((*copy)->mutable_data(), count);
  return copy;
}

}  // namespace penstock::tensor
