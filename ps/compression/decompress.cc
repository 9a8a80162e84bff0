#include "ps/compression/decompress.h"

#include <algorithm>
#include <cstddef>

#include "ps/compression/int8.h"
#include "ps/compression/lists.h"
#include "ps/compression/pieces.h"
#include "ps/optim/elements.h"

namespace penstock::ps::compression {
namespace {

using tensor::DType;
using tensor::Tensor;

// Writes `count` elements to `to`: the list's values at the list's indices, and
// 0 elsewhere.
void Scatter(const Tensor& indices, const Tensor& values, size_t count,
             const optim::Workers& workers, float* to) {
  ForEachPiece(count, workers, [&](size_t begin, size_t some) {
    std::fill_n(to + begin, some, 0.0F);
  });
  const char* const at = indices.bytes().data();
  const char* const from = values.bytes().data();
  const size_t bytes = tensor::ElementSize(values.dtype());
  // Write in parallel. Indices are distinct, so no two threads write to one
  // element.
  ForEachPiece(indices.num_elements(), workers, [&](size_t begin, size_t some) {
    optim::Scratch<float> piece;
    optim::GatherInto(piece.data, optim::Gather::kSet, values.dtype(),
                      from + begin * bytes, some);
    for (size_t i = 0; i < some; ++i) {
      to[ElementAt<int32_t>(at, begin + i)] = piece.data[i];
    }
  });
}

void Dequantize(const Tensor& elements, const Tensor& scales, size_t count,
                const optim::Workers& workers, float* to) {
  const char* const from = elements.bytes().data();
  const char* const by = scales.bytes().data();
  static_assert(optim::kPiece % kBlock == 0, "a piece begins a block");
  ForEachPiece(count, workers, [&](size_t begin, size_t some) {
    DequantizeBlocks(from + begin, by + begin / kBlock * sizeof(float), some,
                     to + begin);
  });
}

}  // namespace

absl::StatusOr<Tensor> Decompress(absl::Span<const int64_t> shape,
                                  absl::Span<const Tensor> list,
                                  const optim::Workers& workers) {
  const absl::StatusOr<Form> form = CheckList(shape, list);
  if (!form.ok()) return form.status();
  if (*form == Form::kFloating) return list[0];
  absl::StatusOr<Tensor> gradient = Tensor::Allocate(
      DType::kF32, {shape.begin(), shape.end()}, tensor::HeapAllocator());
  if (!gradient.ok()) return gradient;
  const absl::StatusOr<absl::Span<float>> to = gradient->mutable_flat<float>();
  if (!to.ok()) return to.status();
  if (*form == Form::kKOfN) {
    Scatter(list[0], list[1], to->size(), workers, to->data());
  } else {
    Dequantize(list[0], list[1], to->size(), workers, to->data());
  }
  return gradient;
}

}  // namespace penstock::ps::compression
