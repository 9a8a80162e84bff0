#include "ps/compression/error_feedback.h"

#include <algorithm>

#include "ps/compression/pieces.h"
#include "ps/optim/elements.h"

namespace penstock::ps::compression {
namespace {

using optim::Gather;
using optim::kPiece;
using tensor::DType;
using tensor::Tensor;

constexpr float kMostInF16 = 65504;

float MostIn(DType dtype) {
  return dtype == DType::kF16 ? kMostInF16
                              : static_cast<float>(optim::kMostInF32);
}

}  // namespace

absl::StatusOr<ErrorFeedback> ErrorFeedback::Create(size_t count) {
  const size_t pieces = (count + kPiece - 1) / kPiece;
  absl::StatusOr<Tensor> memory =
      Tensor::Allocate(DType::kF32, {static_cast<int64_t>(pieces * kPiece)},
                       tensor::HeapAllocator());
  if (!memory.ok()) return memory.status();
  ErrorFeedback residual(*std::move(memory), count);
  std::fill_n(residual.data(), pieces * kPiece, 0.0F);
  return residual;
}

void ErrorFeedback::Add(const optim::GradientView& gradient,
                        const optim::Workers& workers) {
  const auto* const from = static_cast<const char*>(gradient.data);
  const size_t bytes = tensor::ElementSize(gradient.dtype);
  ForEachPiece(count_, workers, [&](size_t begin, size_t some) {
    optim::GatherInto(data() + begin, Gather::kAdd, gradient.dtype,
                      from + begin * bytes, some);
  });
}

void ErrorFeedback::Take(absl::Span<const int32_t> indices, DType dtype,
                         void* to, const optim::Workers& workers) {
  const float most = MostIn(dtype);
  const size_t bytes = tensor::ElementSize(dtype);
  float* const values = data();
  ForEachPiece(indices.size(), workers, [&](size_t begin, size_t some) {
    const int32_t* const at = indices.data() + begin;
    char* const taken = static_cast<char*>(to) + begin * bytes;
    optim::Scratch<float> piece = {};
    for (size_t i = 0; i < some; ++i) {
      piece.data[i] = std::min(most, std::max(-most, values[at[i]]));
    }
    optim::Narrow(piece.data, dtype, taken, some);
    optim::GatherInto(piece.data, Gather::kSet, dtype, taken, some);
    for (size_t i = 0; i < some; ++i) values[at[i]] -= piece.data[i];
  });
}

void ErrorFeedback::PutBack(const Tensor& indices, const Tensor& values,
                            const optim::Workers& workers) {
  const char* const at = indices.bytes().data();
  const char* const from = values.bytes().data();
  const size_t bytes = tensor::ElementSize(values.dtype());
  float* const to = data();
  ForEachPiece(indices.num_elements(), workers, [&](size_t begin, size_t some) {
    optim::Scratch<float> piece;
    optim::GatherInto(piece.data, Gather::kSet, values.dtype(),
                      from + begin * bytes, some);
    for (size_t i = 0; i < some; ++i) {
      to[ElementAt<int32_t>(at, begin + i)] += piece.data[i];
    }
  });
}

}  // namespace penstock::ps::compression
