// Field numbers and tags of tensor.proto, for the codec only.
// CodecTest.GoldenBytes and neighbouring tests compare them with generated
// code.

#ifndef PENSTOCK_TENSOR_SERVICE_CODEC_WIRE_H_
#define PENSTOCK_TENSOR_SERVICE_CODEC_WIRE_H_

#include <cstdint>

namespace penstock::tensor {

// Fields of Bundle, and of every message that adds a header to a bundle.
inline constexpr uint32_t kTensorsField = 1;
inline constexpr uint32_t kHeaderField = 2;
// Fields of NamedTensor.
inline constexpr uint32_t kNameField = 1;
inline constexpr uint32_t kTensorField = 2;
// Fields of Tensor.
inline constexpr uint32_t kDTypeField = 1;
inline constexpr uint32_t kShapeField = 2;
inline constexpr uint32_t kPaddingField = 3;
inline constexpr uint32_t kDataField = 4;
inline constexpr uint32_t kChecksumField = 5;

inline constexpr uint32_t kVarint = 0;
inline constexpr uint32_t kFixed64 = 1;
inline constexpr uint32_t kLengthDelimited = 2;

constexpr uint8_t Tag(uint32_t field, uint32_t wire_type) {
  return static_cast<uint8_t>(field << 3 | wire_type);
}

inline constexpr uint8_t kTensorsTag = Tag(kTensorsField, kLengthDelimited);
inline constexpr uint8_t kHeaderTag = Tag(kHeaderField, kLengthDelimited);
inline constexpr uint8_t kNameTag = Tag(kNameField, kLengthDelimited);
inline constexpr uint8_t kTensorTag = Tag(kTensorField, kLengthDelimited);
inline constexpr uint8_t kDTypeTag = Tag(kDTypeField, kVarint);
inline constexpr uint8_t kShapeTag = Tag(kShapeField, kLengthDelimited);
inline constexpr uint8_t kTensorPaddingTag =
    Tag(kPaddingField, kLengthDelimited);
inline constexpr uint8_t kDataTag = Tag(kDataField, kLengthDelimited);
inline constexpr uint8_t kChecksumTag = Tag(kChecksumField, kFixed64);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CODEC_WIRE_H_
