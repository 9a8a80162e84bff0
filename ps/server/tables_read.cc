// The reads of Tables, for pulls.

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/optim/elements.h"
#include "ps/server/row_tensors.h"
#include "ps/server/tables.h"

namespace penstock::ps {
namespace {

// The number of rows of one task. Looking up this many rows takes long enough
// for a separate task.
constexpr size_t kRowsPerTask = 2048;

}  // namespace

absl::StatusOr<Selection> Tables::Select(const tensor::Bundle& ids,
                                         absl::Span<const std::string> parts,
                                         bool all_parts) const {
  Selection selection;
  size_t row_bytes = 0;
  std::vector<bool> is_wanted(dense_->layout().size());
  for (const std::string& name : parts) {
    const auto part = dense_->Find(name);
    if (!part.ok()) return part.status();
    if (is_wanted[*part]) {
      return absl::InvalidArgumentError(
          absl::StrCat("variable ", Shown(name), ": requested twice"));
    }
    is_wanted[*part] = true;
  }
  for (size_t i = 0; i < is_wanted.size(); ++i) {
    if (all_parts || is_wanted[i]) selection.parts.push_back(i);
  }
  for (const tensor::NamedTensor& named : ids.tensors) {
    const auto rows = model_.FindRows(named.name);
    if (!rows.ok()) return rows.status();
    auto wanted = IdsIn(named);
    if (!wanted.ok()) return wanted.status();
    absl::Status here = CheckIds(*rows, *wanted);
    if (!here.ok()) return here;
    row_bytes += wanted->size() * table(*rows).options().dim * sizeof(float);
    selection.rows.push_back({*rows, *std::move(wanted)});
  }
  if (row_bytes > kMaxRowBytesPerCall) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the requested rows have ", row_bytes, " bytes: request at most ",
        kMaxRowBytesPerCall, " in a call"));
  }
  return selection;
}

std::vector<size_t> Tables::PoliciesOf(const Selection& selection) const {
  std::vector<size_t> policies;
  for (const size_t part : selection.parts) {
    policies.push_back(parts()[part].policy);
  }
  for (const Selection::Rows& rows : selection.rows) {
    policies.push_back(model_.rows()[rows.rows].policy);
  }
  std::sort(policies.begin(), policies.end());
  policies.erase(std::unique(policies.begin(), policies.end()), policies.end());
  return policies;
}

absl::Status Tables::CheckIds(size_t rows,
                              absl::Span<const uint64_t> ids) const {
  const std::string& name = model_.table(model_.rows()[rows].table).name;
  const PlacedTable& placed = *placement_->Find(name);
  if (placement_->servers().size() == 1) return absl::OkStatus();
  for (const uint64_t id : ids) {
    const uint32_t server = placed.ServerOfId(id);
    if (server == server_) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("table ", Shown(name), ": id ", id, " is at server ",
                     server, ", this is ", server_));
  }
  return absl::OkStatus();
}

absl::StatusOr<tensor::Bundle> Tables::Read(const Selection& selection,
                                            absl::Time now) {
  tensor::Bundle bundle;
  bundle.tensors.reserve(selection.parts.size() + selection.rows.size());
  if (!selection.parts.empty()) {
    absl::Status status = dense_->Read(selection.parts, &bundle);
    if (!status.ok()) return status;
  }
  for (const Selection::Rows& rows : selection.rows) {
    auto values = ReadRows(rows, now);
    if (!values.ok()) return values.status();
    bundle.tensors.push_back({model_.table(model_.rows()[rows.rows].table).name,
                              *std::move(values)});
  }
  if (!selection.dtype.has_value()) return bundle;
  for (tensor::NamedTensor& named : bundle.tensors) {
    auto rounded = Rounded(named.tensor, *selection.dtype);
    if (!rounded.ok()) return rounded.status();
    named.tensor = *std::move(rounded);
  }
  return bundle;
}

absl::StatusOr<tensor::Tensor> Tables::NewAnswer(tensor::DType dtype,
                                                 const tensor::Shape& shape) {
  const auto bytes = tensor::ByteSize(dtype, shape);
  if (!bytes.ok()) return bytes.status();
  const size_t size = *bytes;
  if (size > options_.max_answer_bytes) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the requested values have ", size, " bytes, and answers may take ",
        options_.max_answer_bytes, ": request less, or raise --held-answers"));
  }
  const size_t all = answer_bytes_->fetch_add(size) + size;
  // Subtracts `size` from the count when the answer is released, or if this
  // call fails.
  auto share = std::shared_ptr<void>(
      nullptr, [count = answer_bytes_, size](void*) { *count -= size; });
  if (all > options_.max_answer_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "answers that their readers have not read, or keep, take ", all - size,
        " bytes, and may take ", options_.max_answer_bytes, ", and ", size,
        " more are requested: release pulled values, or raise "
        "--held-answers"));
  }
  tensor::Allocator* const allocator = options_.allocator == nullptr
                                           ? tensor::DefaultAllocator()
                                           : options_.allocator;
  auto memory = allocator->Allocate(size);
  if (!memory.ok()) return memory.status();
  char* const data = (*memory)->mutable_data();
  return tensor::Tensor::FromBuffer(
      dtype, shape,
      tensor::Buffer::Wrap(
          data, size, /*writable=*/true,
          [memory = *std::move(memory), share = std::move(share)]() mutable {
            memory = nullptr;
            share = nullptr;
          }));
}

absl::StatusOr<tensor::Tensor> Tables::Rounded(const tensor::Tensor& value,
                                               tensor::DType dtype) {
  if (tensor::ElementSize(value.dtype()) <= tensor::ElementSize(dtype)) {
    return value;
  }
  auto rounded = NewAnswer(dtype, value.shape());
  if (!rounded.ok()) return rounded;
  const size_t count = value.num_elements();
  const char* const from = value.bytes().data();
  char* const to = rounded->buffer()->mutable_data();
  workers_.ForEach((count + optim::kPiece - 1) / optim::kPiece, [&](size_t i) {
    optim::Scratch<float> piece;
    const size_t first = i * optim::kPiece;
    const size_t some = std::min(optim::kPiece, count - first);
    optim::GatherInto(piece.data, optim::Gather::kSet, value.dtype(),
                      from + first * tensor::ElementSize(value.dtype()), some);
    optim::Narrow(piece.data, dtype, to + first * tensor::ElementSize(dtype),
                  some);
  });
  return rounded;
}

absl::StatusOr<tensor::Tensor> Tables::ReadRows(const Selection::Rows& rows,
                                                absl::Time now) {
  sparse::Table& table = *sparse_[rows.rows].table;
  const size_t dim = table.options().dim;
  const size_t count = rows.ids.size();
  auto values = NewAnswer(tensor::DType::kF32, {static_cast<int64_t>(count),
                                                static_cast<int64_t>(dim)});
  if (!values.ok() || count == 0) return values;
  auto* const out = reinterpret_cast<float*>(values->buffer()->mutable_data());
  const absl::Span<const uint64_t> ids = rows.ids;
  // Pull() fails only if a disk fails, because the sizes fit.
  std::vector<absl::Status> pulled((count + kRowsPerTask - 1) / kRowsPerTask);
  workers_.ForEach(pulled.size(), [&](size_t i) {
    const auto some = ids.subspan(i * kRowsPerTask, kRowsPerTask);
    pulled[i] = table.Pull(
        some, now,
        absl::MakeSpan(out + i * kRowsPerTask * dim, some.size() * dim));
  });
  for (const absl::Status& each : pulled) {
    if (!each.ok()) return each;
  }
  return values;
}

}  // namespace penstock::ps
