#include "collectives/reduction/reduction.h"

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "collectives/reduction/kernels.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {
namespace {

using tensor::DType;

bool IsFloating(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF64 || dtype == DType::kF16 ||
         dtype == DType::kBF16;
}

bool IsBitwise(ReduceOp op) {
  return op == ReduceOp::kAnd || op == ReduceOp::kOr || op == ReduceOp::kXor;
}

bool Has(DType dtype, ReduceOp op) {
  if (IsFloating(dtype)) return !IsBitwise(op);
  if (dtype == DType::kBool) {
    return IsBitwise(op) || op == ReduceOp::kMin || op == ReduceOp::kMax;
  }
  return op != ReduceOp::kAverage;
}

}  // namespace

absl::string_view Name(ReduceOp op) {
  switch (op) {
    case ReduceOp::kSum:
      return "sum";
    case ReduceOp::kProduct:
      return "product";
    case ReduceOp::kMin:
      return "min";
    case ReduceOp::kMax:
      return "max";
    case ReduceOp::kAverage:
      return "average";
    case ReduceOp::kAnd:
      return "and";
    case ReduceOp::kOr:
      return "or";
    case ReduceOp::kXor:
      return "xor";
  }
  return "unknown";
}

absl::Status CheckReduction(ReduceOp op, DType dtype) {
  if (Has(dtype, op)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("no ", Name(op), " of ", tensor::Name(dtype)));
}

void Reduce(ReduceOp op, DType dtype, absl::Span<const void* const> from,
            void* into, size_t count) {
  const bool average = op == ReduceOp::kAverage;
  // Casts the list: pointers to void and to bytes have the same representation.
  const auto* const bytes =
      reinterpret_cast<const uint8_t* const*>(from.data());
  ReduceVectors(average ? ReduceOp::kSum : op, dtype, {bytes, from.size()},
                static_cast<uint8_t*>(into), count,
                average ? static_cast<int>(from.size()) : 1);
}

void Divide(DType dtype, void* data, int by, size_t count) {
  auto* const bytes = static_cast<uint8_t*>(data);
  const uint8_t* const from = bytes;
  ReduceVectors(ReduceOp::kSum, dtype, {&from, 1}, bytes, count, by);
}

}  // namespace penstock::collectives
