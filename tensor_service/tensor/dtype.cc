#include "tensor_service/dtype.h"

namespace penstock::tensor {

bool IsDType(int64_t number) {
  return number >= static_cast<int>(DType::kF32) &&
         number <= static_cast<int>(DType::kBool);
}

size_t ElementSize(DType dtype) {
  switch (dtype) {
    case DType::kInt8:
    case DType::kUint8:
    case DType::kBool:
      return 1;
    case DType::kF16:
    case DType::kBF16:
    case DType::kInt16:
      return 2;
    case DType::kF32:
    case DType::kInt32:
      return 4;
    case DType::kF64:
    case DType::kInt64:
      return 8;
  }
  return 1;  // unreachable: IsDType() has checked the number
}

absl::string_view Name(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return "f32";
    case DType::kF64:
      return "f64";
    case DType::kF16:
      return "f16";
    case DType::kBF16:
      return "bf16";
    case DType::kInt8:
      return "int8";
    case DType::kInt16:
      return "int16";
    case DType::kInt32:
      return "int32";
    case DType::kInt64:
      return "int64";
    case DType::kUint8:
      return "uint8";
    case DType::kBool:
      return "bool";
  }
  return "invalid";
}

}  // namespace penstock::tensor
