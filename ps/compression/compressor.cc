#include "ps/compression/compressor.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/compression/int8.h"
#include "ps/compression/lists.h"
#include "ps/compression/pieces.h"
#include "ps/compression/random_k.h"
#include "ps/compression/top_k.h"
#include "ps/optim/elements.h"
#include "ps/optim/gradient.h"

namespace penstock::ps::compression {
namespace {

using Kind = CompressionSpec::Kind;
using optim::kPiece;
using tensor::DType;
using tensor::Tensor;

bool FeedsBack(Kind kind) {
  return kind == Kind::kTopK || kind == Kind::kRandomK;
}

bool IsHalf(DType dtype) {
  return dtype == DType::kF16 || dtype == DType::kBF16;
}

absl::Status CheckSpec(const CompressionSpec& spec, size_t count) {
  if (spec.kind == Kind::kHalf && !IsHalf(spec.dtype)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "half precision is f16 or bf16, not ", tensor::Name(spec.dtype)));
  }
  if (!FeedsBack(spec.kind)) return absl::OkStatus();
  if (!IsHalf(spec.dtype) && spec.dtype != DType::kF32) {
    return absl::InvalidArgumentError(
        absl::StrCat("chosen elements are sent as f32, f16 or bf16, not ",
                     tensor::Name(spec.dtype)));
  }
  if (!(spec.ratio > 0 && spec.ratio <= 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("the ratio of elements to send is ", spec.ratio,
                     ", not above 0 and at most 1"));
  }
  if (count > std::numeric_limits<int32_t>::max()) {
    return absl::InvalidArgumentError(absl::StrCat(
        count, " elements are more than int32 indices reach; split it"));
  }
  return absl::OkStatus();
}

optim::GradientView ViewOf(const Tensor& tensor) {
  return {tensor.dtype(), tensor.bytes().data(), tensor.num_elements()};
}

char* DataOf(Tensor* tensor) { return tensor->buffer()->mutable_data(); }

// Converts `count` elements of a gradient to f32, starting at `begin`.
void Widen(const optim::GradientView& from, size_t begin, size_t count,
           optim::Scratch<float>* to) {
  optim::GatherInto(to->data, optim::Gather::kSet, from.dtype,
                    static_cast<const char*>(from.data) +
                        begin * tensor::ElementSize(from.dtype),
                    count);
}

}  // namespace

Compressor::Compressor(const CompressionSpec& spec, absl::string_view name,
                       tensor::Shape shape, size_t count,
                       const optim::Workers* workers,
                       tensor::Allocator* allocator)
    : spec_(spec),
      name_(name),
      shape_(std::move(shape)),
      count_(count),
      key_(KeyOf(spec.seed, name)),
      workers_(workers),
      allocator_(allocator) {}

absl::StatusOr<std::unique_ptr<Compressor>> Compressor::Create(
    const CompressionSpec& spec, absl::string_view name, tensor::Shape shape,
    const optim::Workers* workers, tensor::Allocator* allocator) {
  const absl::StatusOr<size_t> bytes = tensor::ByteSize(DType::kF32, shape);
  const size_t count = bytes.value_or(0) / sizeof(float);
  std::unique_ptr<Compressor> made(
      new Compressor(spec, name, std::move(shape), count, workers, allocator));
  if (!bytes.ok()) return made->Named(bytes.status());
  const absl::Status status = CheckSpec(spec, count);
  if (!status.ok()) return made->Named(status);
  if (FeedsBack(spec.kind)) {
    absl::StatusOr<ErrorFeedback> residual = ErrorFeedback::Create(count);
    if (!residual.ok()) return made->Named(residual.status());
    made->residual_.emplace(*std::move(residual));
  }
  return made;
}

absl::StatusOr<std::vector<Tensor>> Compressor::Compress(const Tensor& gradient,
                                                         uint64_t step) {
  const absl::Status status = Check(gradient);
  if (!status.ok()) return Named(status);
  absl::StatusOr<Tensors> list;
  switch (spec_.kind) {
    case Kind::kNone:
      return Tensors{gradient};
    case Kind::kHalf:
      list = Halve(gradient);
      break;
    case Kind::kTopK:
    case Kind::kRandomK:
      list = Sparsify(gradient, step);
      break;
    case Kind::kInt8:
      list = Quantize(gradient, step);
      break;
  }
  if (!list.ok()) return Named(list.status());
  return list;
}

absl::Status Compressor::GiveBack(absl::Span<const Tensor> list) {
  const absl::StatusOr<Form> form = CheckList(shape_, list);
  if (!form.ok()) return Named(form.status());
  if (!residual_.has_value()) return absl::OkStatus();
  if (*form != Form::kKOfN) {
    return Named(absl::InvalidArgumentError(
        "what is given back has no indices, so it was not sent from here"));
  }
  const absl::Status status =
      optim::CheckGradient(ViewOf(list[1]), DType::kF32, *workers_);
  if (!status.ok()) return Named(status);
  residual_->PutBack(list[0], list[1], *workers_);
  return absl::OkStatus();
}

absl::Span<const float> Compressor::residual() const {
  if (!residual_.has_value()) return {};
  return residual_->values();
}

size_t Compressor::k() const {
  const double k = std::ceil(spec_.ratio * static_cast<double>(count_));
  return std::min(count_, static_cast<size_t>(k));
}

absl::Status Compressor::Check(const Tensor& gradient) const {
  if (!optim::IsFloating(gradient.dtype()) || gradient.shape() != shape_) {
    return absl::InvalidArgumentError(
        absl::StrCat("a gradient is ", tensor::Describe(DType::kF32, shape_),
                     ", f64, f16 or bf16, not ", gradient.ToString()));
  }
  absl::Status here = gradient.CheckOnHost("compress");
  if (!here.ok()) return here;
  if (spec_.kind == Kind::kNone) return absl::OkStatus();
  return optim::CheckGradient(ViewOf(gradient), DType::kF32, *workers_);
}

absl::StatusOr<std::vector<Tensor>> Compressor::Halve(
    const Tensor& gradient) const {
  if (gradient.dtype() == spec_.dtype) return Tensors{gradient};
  absl::StatusOr<Tensor> half =
      Tensor::Allocate(spec_.dtype, shape_, allocator_);
  if (!half.ok()) return half.status();
  const optim::GradientView from = ViewOf(gradient);
  char* const to = DataOf(&*half);
  ForEachPiece(count_, *workers_, [&](size_t begin, size_t count) {
    optim::Scratch<float> piece;
    Widen(from, begin, count, &piece);
    optim::Narrow(piece.data, spec_.dtype,
                  to + begin * tensor::ElementSize(spec_.dtype), count);
  });
  const absl::Status status =
      optim::CheckGradient(ViewOf(*half), DType::kF32, *workers_);
  if (!status.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "rounded to f16, ", status.message(),
        "; f16 ends at 65504: choose bf16, or clip the gradients"));
  }
  return Tensors{*std::move(half)};
}

absl::StatusOr<std::vector<Tensor>> Compressor::Sparsify(const Tensor& gradient,
                                                         uint64_t step) {
  const auto count = static_cast<int64_t>(k());
  absl::StatusOr<Tensor> indices =
      Tensor::Allocate(DType::kInt32, {count}, allocator_);
  if (!indices.ok()) return indices.status();
  absl::StatusOr<Tensor> values =
      Tensor::Allocate(spec_.dtype, {count}, allocator_);
  if (!values.ok()) return values.status();
  const absl::Span<int32_t> chosen(
      reinterpret_cast<int32_t*>(DataOf(&*indices)), k());
  residual_->Add(ViewOf(gradient), *workers_);
  if (spec_.kind == Kind::kTopK) {
    SelectTopK(residual_->values(), *workers_, chosen);
  } else {
    SelectRandomK(count_, key_, step, chosen);
  }
  residual_->Take(chosen, spec_.dtype, DataOf(&*values), *workers_);
  return Tensors{*std::move(indices), *std::move(values)};
}

absl::StatusOr<std::vector<Tensor>> Compressor::Quantize(const Tensor& gradient,
                                                         uint64_t step) const {
  absl::StatusOr<Tensor> elements =
      Tensor::Allocate(DType::kInt8, shape_, allocator_);
  if (!elements.ok()) return elements.status();
  const auto blocks = static_cast<int64_t>(BlocksOf(count_));
  absl::StatusOr<Tensor> scales =
      Tensor::Allocate(DType::kF32, {blocks}, allocator_);
  if (!scales.ok()) return scales.status();
  const optim::GradientView from = ViewOf(gradient);
  char* const to = DataOf(&*elements);
  auto* const factors = reinterpret_cast<float*>(DataOf(&*scales));
  ForEachPiece(count_, *workers_, [&](size_t begin, size_t count) {
    optim::Scratch<float> piece;
    Widen(from, begin, count, &piece);
    // Round up to whole blocks, because only whole blocks are quantized.
    const size_t some = BlocksOf(count);
    std::fill(piece.data + count, piece.data + some * kBlock, 0.0F);
    int8_t rounded[kPiece];
    QuantizeBlocks(piece.data, some, begin / kBlock, {key_, step}, rounded,
                   factors + begin / kBlock);
    std::memcpy(to + begin, rounded, count);
  });
  return Tensors{*std::move(elements), *std::move(scales)};
}

absl::Status Compressor::Named(const absl::Status& status) const {
  return {status.code(), absl::StrCat("compress gradients of ", name_, ": ",
                                      status.message())};
}

}  // namespace penstock::ps::compression
