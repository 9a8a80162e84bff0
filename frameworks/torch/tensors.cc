#include "frameworks/torch/tensors.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "collectives/reduction/reduction.h"
#include "frameworks/torch/torch_headers.h"
#include "tensor_service/dtype.h"

namespace penstock {
namespace pytorch {
namespace {

using collectives::ReduceOp;
using tensor::DType;

std::optional<DType> KnownType(at::ScalarType type) {
  switch (type) {
    case at::kFloat:
      return DType::kF32;
    case at::kDouble:
      return DType::kF64;
    case at::kHalf:
      return DType::kF16;
    case at::kBFloat16:
      return DType::kBF16;
    case at::kChar:
      return DType::kInt8;
    case at::kShort:
      return DType::kInt16;
    case at::kInt:
      return DType::kInt32;
    case at::kLong:
      return DType::kInt64;
    case at::kByte:
      return DType::kUint8;
    case at::kBool:
      return DType::kBool;
    default:
      return std::nullopt;
  }
}

std::optional<DType> PartOfComplex(at::ScalarType type) {
  switch (type) {
    case at::kComplexFloat:
      return DType::kF32;
    case at::kComplexDouble:
      return DType::kF64;
    case at::kComplexHalf:
      return DType::kF16;
    default:
      return std::nullopt;
  }
}

ReduceOp OpOf(const char* operation, const c10d::ReduceOp& op) {
  switch (op.op_) {
    case c10d::ReduceOp::SUM:
      return ReduceOp::kSum;
    case c10d::ReduceOp::AVG:
      return ReduceOp::kAverage;
    case c10d::ReduceOp::PRODUCT:
      return ReduceOp::kProduct;
    case c10d::ReduceOp::MIN:
      return ReduceOp::kMin;
    case c10d::ReduceOp::MAX:
      return ReduceOp::kMax;
    case c10d::ReduceOp::BAND:
      return ReduceOp::kAnd;
    case c10d::ReduceOp::BOR:
      return ReduceOp::kOr;
    case c10d::ReduceOp::BXOR:
      return ReduceOp::kXor;
    default:
      TORCH_CHECK(false, "penstock ", operation,
                  " has no PREMUL_SUM: multiply the tensor first");
  }
}

ReduceOp ForBool(ReduceOp op) {
  if (op == ReduceOp::kSum) return ReduceOp::kOr;
  return op == ReduceOp::kProduct ? ReduceOp::kAnd : op;
}

bool IsPacked(const at::Tensor& tensor) {
  return tensor.is_contiguous() && !tensor.is_conj() && !tensor.is_neg();
}

bool AreAdjacent(const std::vector<at::Tensor>& tensors) {
  const char* next = static_cast<const char*>(tensors[0].const_data_ptr());
  for (const at::Tensor& tensor : tensors) {
    if (!IsPacked(tensor) || tensor.const_data_ptr() != next) return false;
    next += tensor.nbytes();
  }
  return true;
}

bool OverlapsAny(const std::vector<at::Tensor>& tensors,
                 const at::Tensor& other) {
  return std::any_of(
      tensors.begin(), tensors.end(),
      [&](const at::Tensor& tensor) { return Overlap(tensor, other); });
}

// Copies the elements. Also works on a thread that lacks the modes of the
// caller's thread.
void CopyTo(const at::Tensor& to, const at::Tensor& from) {
  // Enters inference mode if needed: a tensor of inference mode can only be
  // written in this mode.
  const c10::InferenceMode inference(to.is_inference());
  const at::NoGradGuard no_grad;  // after `inference`, which sets the same mode
  to.copy_(from);
}

}  // namespace

Elements Moved(const at::Tensor& tensor) {
  const std::optional<DType> known = KnownType(tensor.scalar_type());
  if (known) return {*known, tensor.numel()};
  return {DType::kUint8, static_cast<int64_t>(tensor.nbytes())};
}

Reduction ReductionOf(const char* operation, const c10d::ReduceOp& op,
                      const at::Tensor& tensor) {
  ReduceOp ours = OpOf(operation, op);
  const at::ScalarType type = tensor.scalar_type();
  if (type == at::kBool) ours = ForBool(ours);
  const std::optional<DType> part = PartOfComplex(type);
  const std::optional<DType> known = part ? part : KnownType(type);
  TORCH_CHECK(known, "penstock ", operation, " cannot reduce ",
              at::toString(type));
  TORCH_CHECK(!part || ours == ReduceOp::kSum || ours == ReduceOp::kAverage,
              "penstock ", operation,
              " reduces complex numbers by sum and average only");
  const absl::Status possible = collectives::CheckReduction(ours, *known);
  TORCH_CHECK(possible.ok(), "penstock ", operation, ": ",
              std::string(possible.message()));
  return {ours, *known, part ? 2 : 1};
}

void CheckTensor(const char* operation, const at::Tensor& tensor) {
  TORCH_CHECK(tensor.device().is_cpu(), "penstock ", operation,
              " takes tensors of the CPU, and this one is on ",
              tensor.device().str(),
              ": choose the backend \"cpu:penstock,cuda:nccl\"");
  TORCH_CHECK(tensor.layout() == at::kStrided, "penstock ", operation,
              " takes dense tensors");
}

const at::Tensor& OnlyTensor(const char* operation,
                             const std::vector<at::Tensor>& tensors) {
  TORCH_CHECK(tensors.size() == 1, "penstock ", operation,
              " takes one tensor, not ", tensors.size());
  CheckTensor(operation, tensors[0]);
  return tensors[0];
}

void CheckList(const char* operation, const std::vector<at::Tensor>& tensors,
               size_t count, const at::Tensor& like) {
  TORCH_CHECK(tensors.size() == count, "penstock ", operation,
              " has a list of ", tensors.size(), " tensors for ", count,
              " ranks");
  for (const at::Tensor& tensor : tensors) {
    CheckTensor(operation, tensor);
    TORCH_CHECK(tensor.scalar_type() == like.scalar_type(), "penstock ",
                operation, ": the types of the tensors differ");
    TORCH_CHECK(tensor.numel() == like.numel(), "penstock ", operation,
                ": the sizes of the tensors differ");
  }
}

void CheckTimes(const char* operation, const at::Tensor& large,
                const at::Tensor& small, int64_t times) {
  CheckTensor(operation, large);
  CheckTensor(operation, small);
  TORCH_CHECK(large.scalar_type() == small.scalar_type(), "penstock ",
              operation, ": input and output have different types");
  TORCH_CHECK(large.numel() == small.numel() * times, "penstock ", operation,
              ": the larger tensor has ", large.numel(), " elements, expected ",
              small.numel(), " for each of ", times, " ranks");
}

bool Overlap(const at::Tensor& a, const at::Tensor& b) {
  if (a.numel() == 0 || b.numel() == 0) return false;
  if (!IsPacked(a) || !IsPacked(b)) {
    return a.storage().is_alias_of(b.storage());
  }
  const char* const begin_a = static_cast<const char*>(a.const_data_ptr());
  const char* const begin_b = static_cast<const char*>(b.const_data_ptr());
  return begin_a < begin_b + b.nbytes() && begin_b < begin_a + a.nbytes();
}

Packed::Packed(const at::Tensor& tensor)
    : tensor_(tensor),
      packed_(IsPacked(tensor)
                  ? tensor
                  : tensor.detach().resolve_conj().resolve_neg().contiguous()) {
}

void Packed::Unpack() const {
  if (packed_.is_same(tensor_)) return;
  CopyTo(tensor_, packed_);
}

Flat::Flat(const std::vector<at::Tensor>& tensors, const at::Tensor& other)
    : tensors_(tensors),
      in_place_(AreAdjacent(tensors) && !OverlapsAny(tensors, other)) {
  flat_ = in_place_
              ? tensors[0]
              : at::empty(
                    {static_cast<int64_t>(tensors.size()) * tensors[0].numel()},
                    tensors[0].options().requires_grad(false));
}

at::Tensor Flat::Part(size_t index) const {
  const int64_t count = tensors_[index].numel();
  return flat_.narrow(0, static_cast<int64_t>(index) * count, count)
      .view(tensors_[index].sizes());
}

void Flat::Pack() const {
  if (in_place_) return;
  for (size_t i = 0; i < tensors_.size(); ++i) CopyTo(Part(i), tensors_[i]);
}

void Flat::Unpack() const {
  if (in_place_) return;
  for (size_t i = 0; i < tensors_.size(); ++i) CopyTo(tensors_[i], Part(i));
}

}  // namespace pytorch
}  // namespace penstock
