#include "ps/client/sparse_rows.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/optim/elements.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

using tensor::DType;
using tensor::Tensor;

constexpr size_t kMaxNameBytesShown = 100;

absl::StatusOr<Tensor> TensorOfIds(absl::Span<const uint64_t> ids,
                                   absl::Span<const uint32_t> places) {
  absl::StatusOr<Tensor> tensor =
      Tensor::Allocate(DType::kInt64, {static_cast<int64_t>(places.size())});
  if (!tensor.ok()) return tensor.status();
  auto* const out =
      reinterpret_cast<uint64_t*>(tensor->buffer()->mutable_data());
  for (size_t i = 0; i < places.size(); ++i) out[i] = ids[places[i]];
  return tensor;
}

tensor::Shape RowsShape(size_t rows, size_t dim) {
  return {static_cast<int64_t>(rows), static_cast<int64_t>(dim)};
}

absl::StatusOr<Tensor> ToF32(const Tensor& from) {
  absl::StatusOr<Tensor> to = Tensor::Allocate(DType::kF32, from.shape());
  if (!to.ok()) return to.status();
  auto* const out = reinterpret_cast<float*>(to->buffer()->mutable_data());
  const size_t size = tensor::ElementSize(from.dtype());
  optim::Scratch<float> piece;
  for (size_t at = 0; at < from.num_elements(); at += optim::kPiece) {
    const size_t count = std::min(optim::kPiece, from.num_elements() - at);
    optim::GatherInto(piece.data, optim::Gather::kSet, from.dtype(),
                      from.bytes().data() + at * size, count);
    std::copy_n(piece.data, count, out + at);
  }
  return to;
}

// Returns one row for each unique id: the sum of its gradients.
absl::StatusOr<Tensor> Summed(const sparse::Unique& unique,
                              const Tensor& gradients, size_t dim) {
  absl::StatusOr<Tensor> aligned = gradients.Aligned();
  if (aligned.ok() && gradients.dtype() != DType::kF32) {
    aligned = ToF32(gradients);
  }
  if (!aligned.ok()) return aligned.status();
  absl::StatusOr<Tensor> sums =
      Tensor::Allocate(DType::kF32, RowsShape(unique.ids.size(), dim));
  if (!sums.ok()) return sums.status();
  auto* const out = reinterpret_cast<float*>(sums->buffer()->mutable_data());
  sparse::SumRows(unique, *aligned->flat<float>(), dim,
                  absl::MakeSpan(out, sums->num_elements()));
  return sums;
}

absl::StatusOr<Tensor> Gathered(const Tensor& rows, size_t dim,
                                absl::Span<const uint32_t> places) {
  absl::StatusOr<Tensor> tensor =
      Tensor::Allocate(rows.dtype(), RowsShape(places.size(), dim));
  if (!tensor.ok()) return tensor.status();
  const size_t size = dim * tensor::ElementSize(rows.dtype());
  char* to = tensor->buffer()->mutable_data();
  for (const uint32_t place : places) {
    std::memcpy(to, rows.bytes().data() + place * size, size);
    to += size;
  }
  return tensor;
}

bool IsRowType(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kF16 || dtype == DType::kBF16;
}

absl::Status CheckRows(const GradientRows& rows, size_t dim) {
  if (IsRowType(rows.gradients.dtype()) &&
      rows.gradients.shape() == RowsShape(rows.ids.size(), dim)) {
    if (rows.gradients.device().is_host()) return absl::OkStatus();
    return rows.gradients.CheckOnHost(
        absl::StrCat("table ", base::Printable(rows.table, kMaxNameBytesShown),
                     ": split the gradients of rows,"));
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "table ", base::Printable(rows.table, kMaxNameBytesShown),
      ": the gradients of ", rows.ids.size(), " ids are ",
      rows.gradients.ToString(), " and not of f32, f16 or bf16 and shape [",
      rows.ids.size(), ",", dim, "]"));
}

}  // namespace

RowRequest::RowRequest(const PlacedTable& table, size_t servers,
                       absl::Span<const uint64_t> ids, size_t dim, DType dtype,
                       const sparse::HashKey& hash)
    : dim_(dim),
      dtype_(dtype),
      unique_(sparse::FindUnique(ids, hash)),
      split_(Split(table, unique_.ids, servers)),
      received_(servers) {}

absl::StatusOr<Tensor> RowRequest::IdsFor(uint32_t server) const {
  return TensorOfIds(unique_.ids, split_.Of(server));
}

absl::Status RowRequest::Take(uint32_t server, Tensor rows) {
  const tensor::Shape expected = RowsShape(split_.Of(server).size(), dim_);
  if (rows.dtype() != dtype_ || rows.shape() != expected) {
    return absl::InternalError(
        absl::StrCat("rows came as ", rows.ToString(), " and not as ",
                     tensor::Describe(dtype_, expected)));
  }
  received_[server] = std::move(rows);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> RowRequest::Rows() const {
  const size_t count = unique_.row_of.size();
  const bool repeats = unique_.ids.size() != count;
  for (size_t server = 0; server < received_.size(); ++server) {
    const bool has_all =
        split_.Of(static_cast<uint32_t>(server)).size() == unique_.ids.size();
    if (has_all && count > 0 && !repeats) return received_[server];
  }
  absl::StatusOr<Tensor> rows =
      Tensor::Allocate(dtype_, RowsShape(count, dim_));
  if (!rows.ok()) return rows.status();
  const size_t size = dim_ * tensor::ElementSize(dtype_);
  std::vector<const char*> row_at(unique_.ids.size());
  for (size_t server = 0; server < received_.size(); ++server) {
    const char* from = received_[server].bytes().data();
    for (const uint32_t at : split_.Of(static_cast<uint32_t>(server))) {
      row_at[at] = from;
      from += size;
    }
  }
  char* to = rows->buffer()->mutable_data();
  for (const uint32_t at : unique_.row_of) {
    std::memcpy(to, row_at[at], size);
    to += size;
  }
  return rows;
}

absl::StatusOr<std::vector<absl::optional<RowPush>>> SplitRows(
    const PlacedTable& table, size_t servers, const GradientRows& rows,
    size_t dim, const sparse::HashKey& hash) {
  absl::Status status = CheckRows(rows, dim);
  if (!status.ok()) return status;
  const sparse::Unique unique = sparse::FindUnique(rows.ids, hash);
  const bool repeats = unique.ids.size() != rows.ids.size();
  absl::StatusOr<Tensor> sums =
      repeats ? Summed(unique, rows.gradients, dim) : rows.gradients;
  if (!sums.ok()) return sums.status();
  const SplitIds split = Split(table, unique.ids, servers);
  std::vector<absl::optional<RowPush>> pushes(servers);
  for (size_t server = 0; server < servers; ++server) {
    const auto places = split.Of(static_cast<uint32_t>(server));
    if (places.empty()) continue;
    absl::StatusOr<Tensor> ids = TensorOfIds(unique.ids, places);
    if (!ids.ok()) return ids.status();
    absl::StatusOr<Tensor> part = places.size() == unique.ids.size()
                                      ? sums
                                      : Gathered(*sums, dim, places);
    if (!part.ok()) return part.status();
    pushes[server] = RowPush{*std::move(ids), *std::move(part)};
  }
  return pushes;
}

}  // namespace penstock::ps
