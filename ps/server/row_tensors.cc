#include "ps/server/row_tensors.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "ps/optim/elements.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

constexpr size_t kMaxNameBytesShown = 100;

}  // namespace

std::string Shown(absl::string_view table) {
  return base::Printable(table, kMaxNameBytesShown);
}

absl::StatusOr<std::vector<uint64_t>> IdsIn(const tensor::NamedTensor& named) {
  const tensor::Tensor& tensor = named.tensor;
  if (tensor.dtype() != tensor::DType::kInt64 || tensor.shape().size() != 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", Shown(named.name), ": its ids are ",
                     tensor.ToString(), ", wanted int64 [n]"));
  }
  std::vector<uint64_t> ids(tensor.num_elements());
  if (!ids.empty()) {
    std::memcpy(ids.data(), tensor.bytes().data(), tensor.byte_size());
  }
  return ids;
}

absl::StatusOr<tensor::Tensor> RowsIn(const tensor::NamedTensor& named,
                                      size_t rows, size_t dim) {
  const tensor::Tensor& tensor = named.tensor;
  const tensor::Shape wanted = {static_cast<int64_t>(rows),
                                static_cast<int64_t>(dim)};
  const tensor::DType dtype = tensor.dtype();
  if (!optim::IsFloating(dtype) || dtype == tensor::DType::kF64 ||
      tensor.shape() != wanted) {
    return absl::InvalidArgumentError(absl::StrCat(
        "table ", Shown(named.name), ": its gradients are ", tensor.ToString(),
        ", wanted ", tensor::Describe(tensor::DType::kF32, wanted),
        ", or f16 or bf16"));
  }
  if (dtype == tensor::DType::kF32) return tensor.Aligned();
  auto values = tensor::Tensor::Allocate(tensor::DType::kF32, wanted,
                                         tensor::HeapAllocator());
  if (!values.ok()) return values;
  auto* const to = reinterpret_cast<float*>(values->buffer()->mutable_data());
  optim::Scratch<float> piece;
  for (size_t i = 0; i < tensor.num_elements(); i += optim::kPiece) {
    const size_t some = std::min(optim::kPiece, tensor.num_elements() - i);
    optim::GatherInto(piece.data, optim::Gather::kSet, dtype,
                      tensor.bytes().data() + i * tensor::ElementSize(dtype),
                      some);
    std::copy_n(piece.data, some, to + i);
  }
  return values;
}

absl::Span<const float> FloatsOf(const tensor::Tensor& aligned) {
  return {reinterpret_cast<const float*>(aligned.bytes().data()),
          aligned.num_elements()};
}

}  // namespace penstock::ps
