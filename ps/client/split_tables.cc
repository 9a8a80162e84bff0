#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "ps/client/dense_values.h"
#include "tensor_service/buffer.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

using tensor::Tensor;

constexpr size_t kMaxNameBytesShown = 100;

absl::Status Invalid(absl::string_view table, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat(
      "table ", base::Printable(table, kMaxNameBytesShown), ": ", why));
}

bool IsFloating(tensor::DType dtype) {
  return dtype == tensor::DType::kF32 || dtype == tensor::DType::kF64 ||
         dtype == tensor::DType::kF16 || dtype == tensor::DType::kBF16;
}

bool Fits(const PlacedDense& table, const Tensor& given, DenseKind kind) {
  const bool is_of_type = kind == DenseKind::kValues
                              ? given.dtype() == table.dtype
                              : IsFloating(given.dtype());
  return is_of_type && given.shape() == table.shape && given.device().is_host();
}

// Returns the error for a tensor that does not match its table.
absl::Status DoesNotFit(const PlacedDense& table, const Tensor& given) {
  if (!given.device().is_host()) {
    return given.CheckOnHost(absl::StrCat(
        "table ", base::Printable(table.name, kMaxNameBytesShown), ": split"));
  }
  return Invalid(
      table.name,
      absl::StrCat("it is ", tensor::Describe(table.dtype, table.shape),
                   ", and was given ", given.ToString()));
}

// Returns the given tensor of each table of the layout, or null for a table
// without one. Tables mostly come in the order of the model, and then need no
// look-up.
absl::StatusOr<std::vector<const Tensor*>> ByTable(const Layout& layout,
                                                   const tensor::Bundle& tables,
                                                   DenseKind kind) {
  const std::vector<PlacedDense>& placed = layout.tables();
  std::vector<const Tensor*> by_table(placed.size(), nullptr);
  size_t next = 0;
  for (const tensor::NamedTensor& named : tables.tensors) {
    size_t at = next;
    if (at >= placed.size() || placed[at].name != named.name) {
      const absl::optional<size_t> found = layout.Find(named.name);
      if (!found.has_value()) {
        return Invalid(named.name, "the model has no dense table of that name");
      }
      at = *found;
    }
    if (by_table[at] != nullptr) {
      return Invalid(named.name, "it was given twice");
    }
    if (!Fits(placed[at], named.tensor, kind)) {
      return DoesNotFit(placed[at], named.tensor);
    }
    by_table[at] = &named.tensor;
    next = at + 1;
  }
  return by_table;
}

absl::Status OtherType(const Layout& layout, const PlacedPart& part,
                       const PartPiece& piece,
                       const std::vector<const Tensor*>& by_table) {
  const size_t first = part.pieces[0].table;
  return Invalid(
      layout.tables()[piece.table].name,
      absl::StrCat("it is ", by_table[piece.table]->ToString(), ", and ",
                   layout.tables()[first].name, ", which shares ", part.name,
                   " with it, ", by_table[first]->ToString(),
                   ": give both of one type"));
}

absl::StatusOr<Tensor> Pack(const Layout& layout, const PlacedPart& part,
                            const std::vector<const Tensor*>& by_table) {
  const tensor::DType dtype = by_table[part.pieces[0].table]->dtype();
  absl::StatusOr<Tensor> pack = Tensor::Allocate(dtype, part.shape);
  if (!pack.ok()) return pack.status();
  const size_t size = tensor::ElementSize(dtype);
  char* const data = pack->buffer()->mutable_data();
  for (const PartPiece& piece : part.pieces) {
    const Tensor& from = *by_table[piece.table];
    if (from.dtype() != dtype) return OtherType(layout, part, piece, by_table);
    if (piece.elements == 0) continue;
    std::memcpy(data + piece.first * size,
                from.buffer()->data() + piece.table_first * size,
                piece.elements * size);
  }
  return pack;
}

// Returns the tensor of a part, or nullopt if none of the part's tables was
// given.
absl::StatusOr<absl::optional<Tensor>> TensorOf(
    const Layout& layout, const PlacedPart& part,
    const std::vector<const Tensor*>& by_table) {
  const PartPiece* given = nullptr;
  const PartPiece* missing = nullptr;
  for (const PartPiece& piece : part.pieces) {
    (by_table[piece.table] != nullptr ? given : missing) = &piece;
  }
  if (given == nullptr) return absl::optional<Tensor>();
  if (missing != nullptr) {
    return Invalid(
        layout.tables()[missing->table].name,
        absl::StrCat("it was not given, but ",
                     layout.tables()[given->table].name, ", which shares ",
                     part.name, " with it: give zeros"));
  }
  if (part.is_pack()) return Pack(layout, part, by_table);
  const Tensor& whole = *by_table[given->table];
  if (!layout.tables()[given->table].is_split()) {
    return absl::optional<Tensor>(whole);
  }
  return absl::optional<Tensor>(
      SubTensor(whole, given->table_first, given->elements, part.shape));
}

}  // namespace

Tensor SubTensor(const Tensor& whole, size_t first, size_t count,
                 tensor::Shape shape) {
  const size_t size = tensor::ElementSize(whole.dtype());
  return *Tensor::FromBuffer(
      whole.dtype(), std::move(shape),
      tensor::Buffer::Share(whole.bytes().data() + first * size, count * size,
                            whole.buffer(), whole.held_bytes()));
}

absl::StatusOr<std::vector<PartTensor>> SplitTables(
    const Layout& layout, const tensor::Bundle& tables, DenseKind kind) {
  auto by_table = ByTable(layout, tables, kind);
  if (!by_table.ok()) return by_table.status();
  std::vector<PartTensor> parts;
  parts.reserve(layout.parts().size());
  for (size_t at = 0; at < layout.parts().size(); ++at) {
    absl::StatusOr<absl::optional<Tensor>> tensor =
        TensorOf(layout, layout.parts()[at], *by_table);
    if (!tensor.ok()) return tensor.status();
    if (tensor->has_value()) parts.push_back({at, **std::move(tensor)});
  }
  return parts;
}

}  // namespace penstock::ps
