#include "ps/compression/lists.h"

#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/compression/pieces.h"
#include "ps/optim/elements.h"
#include "ps/optim/gradient.h"

namespace penstock::ps::compression {
namespace {

using tensor::DType;
using tensor::Tensor;

// The shape of the gradient, in the form that CheckList() needs.
struct Part {
  absl::Span<const int64_t> shape;
  size_t count = 0;
};

template <typename... Words>
absl::Status Refuse(const Part& part, const Words&... words) {
  return absl::InvalidArgumentError(absl::StrCat(
      "gradient of shape [", absl::StrJoin(part.shape, ","), "]: ", words...));
}

bool IsVector(const Tensor& tensor, size_t count) {
  return tensor.shape().size() == 1 && tensor.num_elements() == count;
}

bool HasShape(const Tensor& tensor, const Part& part) {
  return absl::MakeConstSpan(tensor.shape()) == part.shape;
}

absl::Status CheckOne(const Part& part, const Tensor& tensor) {
  if (!optim::IsFloating(tensor.dtype())) {
    return Refuse(part, "a single tensor is f32, f64, f16 or bf16, not ",
                  tensor.ToString());
  }
  if (!HasShape(tensor, part)) {
    return Refuse(part, tensor.ToString(), " has another shape");
  }
  return absl::OkStatus();
}

absl::Status CheckIndices(const Part& part, const Tensor& indices) {
  const char* const data = indices.bytes().data();
  int64_t before = -1;
  for (size_t i = 0; i < indices.num_elements(); ++i) {
    const auto index = ElementAt<int32_t>(data, i);
    if (index <= before) {
      return Refuse(
          part, "index ", i, " is ", index,
          i == 0 ? ", negative"
                 : absl::StrCat(" after ", before, "; they must ascend"));
    }
    before = index;
  }
  // Check only the last index, which is the largest.
  if (before >= 0 && static_cast<uint64_t>(before) >= part.count) {
    return Refuse(part, "an index is ", before, ", but there are ", part.count,
                  " elements");
  }
  return absl::OkStatus();
}

absl::Status CheckKOfN(const Part& part, const Tensor& indices,
                       const Tensor& values) {
  const size_t k = indices.num_elements();
  if (!IsVector(indices, k) || k > part.count) {
    return Refuse(part, "indices are int32[k] with k from 0 to ", part.count,
                  ", not ", indices.ToString());
  }
  if (!optim::IsFloating(values.dtype()) || values.dtype() == DType::kF64 ||
      !IsVector(values, k)) {
    return Refuse(part, "values at ", k, " indices are f32, f16 or bf16[", k,
                  "], not ", values.ToString());
  }
  return CheckIndices(part, indices);
}

absl::Status CheckInt8(const Part& part, const Tensor& elements,
                       const Tensor& scales) {
  if (!HasShape(elements, part)) {
    return Refuse(part, elements.ToString(), " has another shape");
  }
  const size_t blocks = BlocksOf(part.count);
  if (scales.dtype() != DType::kF32 || !IsVector(scales, blocks)) {
    return Refuse(part, "scales are f32[", blocks, "], one for each ", kBlock,
                  " elements, not ", scales.ToString());
  }
  const char* const data = scales.bytes().data();
  for (size_t i = 0; i < blocks; ++i) {
    const auto scale = ElementAt<float>(data, i);
    // Uses a negated comparison, which also refuses NaN.
    if (!(scale >= 0 && scale <= optim::kMostInF32)) {
      return Refuse(part, "scale ", i, " is ", scale, ", not from 0 to ",
                    optim::kMostInF32);
    }
  }
  return absl::OkStatus();
}

// Returns `form` if `status` is OK, otherwise `status`.
absl::StatusOr<Form> If(const absl::Status& status, Form form) {
  if (!status.ok()) return status;
  return form;
}

}  // namespace

absl::StatusOr<Form> CheckList(absl::Span<const int64_t> shape,
                               absl::Span<const Tensor> list) {
  const absl::StatusOr<size_t> bytes = tensor::ByteSize(DType::kF32, shape);
  if (!bytes.ok()) return bytes.status();
  const Part part = {shape, *bytes / sizeof(float)};
  for (const Tensor& tensor : list) {
    absl::Status here = tensor.CheckOnHost("read the gradient of");
    if (!here.ok()) return here;
  }
  if (list.size() == 1) return If(CheckOne(part, list[0]), Form::kFloating);
  if (list.size() != 2) {
    return Refuse(part, "it is one or two tensors, not ", list.size());
  }
  if (list[0].dtype() == DType::kInt32) {
    return If(CheckKOfN(part, list[0], list[1]), Form::kKOfN);
  }
  if (list[0].dtype() == DType::kInt8) {
    return If(CheckInt8(part, list[0], list[1]), Form::kInt8);
  }
  return Refuse(part, "the first of two tensors is int32 or int8, not ",
                list[0].ToString());
}

}  // namespace penstock::ps::compression
