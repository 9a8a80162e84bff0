// Element types of tensors.

#ifndef PENSTOCK_TENSOR_SERVICE_DTYPE_H_
#define PENSTOCK_TENSOR_SERVICE_DTYPE_H_

#include <cstddef>
#include <cstdint>

#include "absl/strings/string_view.h"

namespace penstock::tensor {

// Element types. The numbers are those of tensor.proto.
enum class DType : int {
  kF32 = 1,
  kF64 = 2,
  kF16 = 3,
  kBF16 = 4,
  kInt8 = 5,
  kInt16 = 6,
  kInt32 = 7,
  kInt64 = 8,
  kUint8 = 9,
  kBool = 10,
};

// IEEE binary16 and bfloat16, as bits. Penstock transports such numbers and
// does not compute with them.
struct Half {
  uint16_t bits;
};
struct BFloat16 {
  uint16_t bits;
};

// A bool element of one byte, where every value except 0 is true. C++'s bool
// would be undefined for other values than 0 and 1, which a peer may send.
struct Bool {
  uint8_t byte;
  explicit operator bool() const { return byte != 0; }
};

// Returns true if `number`, which may come from a peer, names a type.
bool IsDType(int64_t number);

// Returns the bytes of an element: 1, 2, 4 or 8.
size_t ElementSize(DType dtype);

// Returns "f32", "bf16", "bool" and so on.
absl::string_view Name(DType dtype);

// The DType of a C++ element type, as DTypeOf<float>::kValue.
template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType kValue = DType::kF32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType kValue = DType::kF64;
};
template <>
struct DTypeOf<Half> {
  static constexpr DType kValue = DType::kF16;
};
template <>
struct DTypeOf<BFloat16> {
  static constexpr DType kValue = DType::kBF16;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType kValue = DType::kInt8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType kValue = DType::kInt16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType kValue = DType::kInt32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType kValue = DType::kInt64;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType kValue = DType::kUint8;
};
template <>
struct DTypeOf<Bool> {
  static constexpr DType kValue = DType::kBool;
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_DTYPE_H_
