#include "tensor_service/strided.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace penstock::tensor {
namespace {

uint64_t Magnitude(int64_t value) {
  return value < 0 ? uint64_t{0} - static_cast<uint64_t>(value)
                   : static_cast<uint64_t>(value);
}

// Copies `count` runs of `kBytes` bytes each to `to`, contiguously. The
// compiler turns each copy into a move, because the size is a constant.
template <size_t kBytes>
void CopyShortRuns(const char* from, int64_t stride, int64_t count, char* to) {
  for (int64_t i = 0; i < count; ++i) {
    memcpy(to, from + i * stride, kBytes);
    to += kBytes;
  }
}

void CopyRuns(const char* from, int64_t stride, int64_t count, size_t bytes,
              char* to) {
  switch (bytes) {
    case 1:
      return CopyShortRuns<1>(from, stride, count, to);
    case 2:
      return CopyShortRuns<2>(from, stride, count, to);
    case 4:
      return CopyShortRuns<4>(from, stride, count, to);
    case 8:
      return CopyShortRuns<8>(from, stride, count, to);
    default:
      for (int64_t i = 0; i < count; ++i) {
        memcpy(to, from + i * stride, bytes);
        to += bytes;
      }
  }
}

}  // namespace

absl::StatusOr<StridedView> StridedView::Create(
    DType dtype, Shape shape, absl::Span<const int64_t> strides,
    std::shared_ptr<Buffer> buffer, size_t offset) {
  const absl::StatusOr<size_t> size = ByteSize(dtype, shape);
  if (!size.ok()) return size.status();
  if (strides.size() != shape.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("view ", Describe(dtype, shape), ": it has ",
                     strides.size(), " strides; give one for each dimension"));
  }
  if (buffer == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("view ", Describe(dtype, shape), ": it has no buffer"));
  }
  if (!buffer->device().is_host()) {
    return absl::FailedPreconditionError(
        absl::StrCat("view ", Describe(dtype, shape), ": its elements lie on ",
                     buffer->device().ToString(),
                     ", where the CPU cannot read them; call ToHost() of the "
                     "tensor, and view what that returns"));
  }
  StridedView view;
  view.dtype_ = dtype;
  view.shape_ = std::move(shape);
  view.buffer_ = std::move(buffer);
  view.offset_ = offset;
  view.byte_size_ = *size;
  if (!view.IsInside(strides)) {
    return absl::InvalidArgumentError(
        absl::StrCat("view ", Describe(dtype, view.shape_), " with strides ",
                     absl::StrJoin(strides, ","), " from byte ", offset,
                     ": an element is outside the buffer of ",
                     view.buffer_->size(), " bytes"));
  }
  view.Normalize(strides);
  return view;
}

// Sums the distances that elements reach before and after the first one. Each
// sum stays within the buffer, so nothing overflows.
bool StridedView::IsInside(absl::Span<const int64_t> strides) const {
  const uint64_t size = buffer_->size();
  if (offset_ > size) return false;
  if (byte_size_ == 0) return true;
  uint64_t before = 0;
  uint64_t after = ElementSize(dtype_);
  if (after > size - offset_) return false;
  for (size_t d = 0; d < strides.size(); ++d) {
    const auto steps = static_cast<uint64_t>(shape_[d] - 1);
    if (steps == 0) continue;
    const uint64_t step = Magnitude(strides[d]);
    if (step > size / steps) return false;
    uint64_t& reach = strides[d] < 0 ? before : after;
    const uint64_t most = strides[d] < 0 ? offset_ : size - offset_;
    if (step * steps > most - reach) return false;
    reach += step * steps;
  }
  return true;
}

void StridedView::Normalize(absl::Span<const int64_t> strides) {
  run_bytes_ = ElementSize(dtype_);
  if (byte_size_ == 0) return;
  for (size_t d = 0; d < strides.size(); ++d) {
    if (shape_[d] == 1) continue;
    const Axis axis = {shape_[d], strides[d]};
    // Merges two axes that are contiguous. The product cannot overflow:
    // Create() has checked that all elements are inside the buffer, so it is
    // less than twice the buffer's size.
    if (!axes_.empty() && axes_.back().stride == axis.size * axis.stride) {
      axes_.back() = {axes_.back().size * axis.size, axis.stride};
    } else {
      axes_.push_back(axis);
    }
  }
  if (!axes_.empty() &&
      axes_.back().stride == static_cast<int64_t>(run_bytes_)) {
    run_bytes_ *= static_cast<size_t>(axes_.back().size);
    axes_.pop_back();
  }
}

// Calls `visit` for each row of runs, with the first run, the distance between
// runs, and their number.
template <typename Visit>
void StridedView::ForEachRow(const Visit& visit) const {
  if (byte_size_ == 0) return;
  const Axis inner = axes_.empty() ? Axis{1, 0} : axes_.back();
  const size_t outer = axes_.empty() ? 0 : axes_.size() - 1;
  std::vector<int64_t> index(outer, 0);
  const char* at = buffer_->data() + offset_;
  for (;;) {
    visit(at, inner.stride, inner.size);
    size_t d = outer;
    while (d > 0) {
      --d;
      if (++index[d] < axes_[d].size) {
        at += axes_[d].stride;
        break;
      }
      at -= (axes_[d].size - 1) * axes_[d].stride;
      index[d] = 0;
      if (d == 0) return;
    }
    if (outer == 0) return;
  }
}

void StridedView::AppendRuns(std::vector<grpc::Slice>* slices) const {
  const grpc::Slice all = SliceOf(buffer_);
  ForEachRow([&](const char* at, int64_t stride, int64_t count) {
    for (int64_t i = 0; i < count; ++i) {
      const auto from = static_cast<size_t>(at + i * stride - buffer_->data());
      slices->push_back(all.sub(from, from + run_bytes_));
    }
  });
}

absl::StatusOr<Tensor> StridedView::Pack(Allocator* allocator) const {
  absl::StatusOr<Tensor> packed = Tensor::Allocate(dtype_, shape_, allocator);
  if (!packed.ok()) return packed;
  char* to = packed->buffer()->mutable_data();
  ForEachRow([&](const char* at, int64_t stride, int64_t count) {
    CopyRuns(at, stride, count, run_bytes_, to);
    to += static_cast<size_t>(count) * run_bytes_;
  });
  return packed;
}

}  // namespace penstock::tensor
