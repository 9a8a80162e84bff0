#include "tensor_service/codec/plain_tensor.h"

#include <cstddef>
#include <cstdint>

#include "tensor_service/codec/wire.h"

namespace penstock::tensor {
namespace {

// A cursor over contiguous bytes.
class FlatReader {
 public:
  explicit FlatReader(absl::string_view bytes)
      : at_(bytes.data()), end_(at_ + bytes.size()) {}

  bool AtEnd() const { return at_ == end_; }

  // Skips a tag of one byte if the next byte is `tag`.
  bool ReadTag(uint8_t tag) {
    if (AtEnd() || static_cast<uint8_t>(*at_) != tag) return false;
    ++at_;
    return true;
  }

  // Reads a varint of at most nine bytes, or 63 bits. Longer varints are
  // negative or malformed.
  bool ReadVarint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 63 && at_ != end_; shift += 7) {
      const uint8_t byte = static_cast<uint8_t>(*at_++);
      *value |= static_cast<uint64_t>(byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }

  // Reads a length, and returns that many bytes.
  bool ReadBytes(absl::string_view* bytes) {
    uint64_t length;
    if (!ReadVarint(&length) || length > static_cast<size_t>(end_ - at_)) {
      return false;
    }
    *bytes = absl::string_view(at_, length);
    at_ += length;
    return true;
  }

 private:
  const char* at_;
  const char* const end_;
};

bool ReadShape(absl::string_view bytes, Shape* shape) {
  FlatReader in(bytes);
  while (!in.AtEnd()) {
    uint64_t dimension;
    if (shape->size() == kMaxRank || !in.ReadVarint(&dimension)) return false;
    shape->push_back(static_cast<int64_t>(dimension));
  }
  return true;
}

bool ReadTensor(absl::string_view bytes, PlainTensor* tensor) {
  FlatReader in(bytes);
  uint64_t dtype;
  absl::string_view part;
  if (!in.ReadTag(kDTypeTag) || !in.ReadVarint(&dtype)) return false;
  if (!IsDType(static_cast<int64_t>(dtype))) return false;
  tensor->dtype = static_cast<DType>(dtype);
  if (in.ReadTag(kShapeTag)) {
    if (!in.ReadBytes(&part) || !ReadShape(part, &tensor->shape)) return false;
  }
  if (in.ReadTag(kTensorPaddingTag) && !in.ReadBytes(&part)) return false;
  if (in.ReadTag(kDataTag) && !in.ReadBytes(&tensor->data)) return false;
  return in.AtEnd();
}

}  // namespace

bool ReadPlainTensor(absl::string_view bytes, PlainTensor* tensor) {
  FlatReader in(bytes);
  absl::string_view part;
  if (in.ReadTag(kNameTag) && !in.ReadBytes(&tensor->name)) return false;
  return in.ReadTag(kTensorTag) && in.ReadBytes(&part) &&
         ReadTensor(part, tensor) && in.AtEnd();
}

}  // namespace penstock::tensor
