#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/client/dense_values.h"
#include "tensor_service/buffer.h"

namespace penstock::ps {

using tensor::Tensor;

absl::StatusOr<TableAssembly> TableAssembly::Create(
    const Layout* layout, absl::optional<std::vector<size_t>> tables,
    absl::optional<tensor::DType> narrow) {
  TableAssembly assembly;
  assembly.layout_ = layout;
  assembly.narrow_ = narrow;
  assembly.received_.resize(layout->parts().size());
  if (tables.has_value()) {
    assembly.Want(*std::move(tables));
  } else {
    assembly.WantAll();
  }
  if (assembly.split_.empty()) return assembly;
  assembly.whole_.resize(layout->tables().size());
  assembly.is_abandoned_.resize(layout->tables().size());
  for (const size_t at : assembly.split_) {
    const PlacedDense& table = layout->tables()[at];
    absl::StatusOr<Tensor> whole =
        Tensor::Allocate(assembly.Sent(table.dtype), table.shape);
    if (!whole.ok()) return whole.status();
    assembly.whole_[at] = *std::move(whole);
  }
  return assembly;
}

void TableAssembly::WantAll() {
  parts_.resize(layout_->parts().size());
  std::iota(parts_.begin(), parts_.end(), 0);
  split_ = layout_->split_tables();
}

void TableAssembly::Want(std::vector<size_t> tables) {
  is_wanted_.resize(layout_->tables().size());
  std::vector<bool> is_part_wanted(layout_->parts().size());
  for (const size_t at : tables) {
    const PlacedDense& table = layout_->tables()[at];
    is_wanted_[at] = true;
    if (table.is_split()) split_.push_back(at);
    for (const PieceAt& piece : table.pieces) is_part_wanted[piece.part] = true;
  }
  for (size_t part = 0; part < is_part_wanted.size(); ++part) {
    if (is_part_wanted[part]) parts_.push_back(part);
  }
  tables_ = std::move(tables);
}

tensor::DType TableAssembly::Sent(tensor::DType dtype) const {
  const bool is_longer =
      narrow_.has_value() &&
      tensor::ElementSize(dtype) > tensor::ElementSize(*narrow_);
  return is_longer ? *narrow_ : dtype;
}

const PartPiece& TableAssembly::At(const PieceAt& at) const {
  return layout_->parts()[at.part].pieces[at.piece];
}

std::vector<tensor::Destination> TableAssembly::DestinationsOf(
    uint32_t server) const {
  std::vector<tensor::Destination> destinations;
  for (const size_t at : split_) {
    if (whole_[at].byte_size() == 0) continue;
    for (const PieceAt& piece : layout_->tables()[at].pieces) {
      const PlacedPart& part = layout_->parts()[piece.part];
      if (part.server != server || part.is_pack()) continue;
      const Tensor& whole = whole_[at];
      const size_t size = tensor::ElementSize(whole.dtype());
      auto memory = tensor::Buffer::Wrap(
          whole.buffer()->mutable_data() + At(piece).table_first * size,
          At(piece).elements * size, /*writable=*/true,
          [owner = whole.buffer()] {});
      destinations.emplace_back(
          part.name, *Tensor::FromBuffer(whole.dtype(), part.shape, memory));
    }
  }
  return destinations;
}

void TableAssembly::AbandonDestinations(uint32_t server) {
  for (const size_t at : split_) {
    for (const PieceAt& piece : layout_->tables()[at].pieces) {
      const PlacedPart& part = layout_->parts()[piece.part];
      if (part.server == server && !part.is_pack()) is_abandoned_[at] = true;
    }
  }
}

absl::Status TableAssembly::Take(size_t at, Tensor tensor) {
  const PlacedPart& part = layout_->parts()[at];
  if (tensor.dtype() != Sent(part.dtype) || tensor.shape() != part.shape) {
    return absl::InternalError(absl::StrCat(
        "part ", part.name, " came as ", tensor.ToString(), " and not as ",
        tensor::Describe(Sent(part.dtype), part.shape)));
  }
  if (part.is_pack()) {  // one copy aligns all views of the pack
    absl::StatusOr<Tensor> aligned = tensor.Aligned();
    if (!aligned.ok()) return aligned.status();
    tensor = *std::move(aligned);
  }
  received_[at] = std::move(tensor);
  return absl::OkStatus();
}

absl::Status TableAssembly::FinishTable(size_t at) {
  const PlacedDense& table = layout_->tables()[at];
  Tensor whole = whole_[at];
  if (is_abandoned_[at]) {
    absl::StatusOr<Tensor> other =
        Tensor::Allocate(Sent(table.dtype), table.shape);
    if (!other.ok()) return other.status();
    whole = *std::move(other);
  }
  const size_t size = tensor::ElementSize(whole.dtype());
  for (const PieceAt& piece : table.pieces) {
    const PartPiece& range = At(piece);
    const char* const from =
        received_[piece.part].bytes().data() + range.first * size;
    char* const to = whole.buffer()->mutable_data() + range.table_first * size;
    if (range.elements == 0 || from == to) continue;
    std::memcpy(to, from, range.elements * size);
  }
  whole_[at] = std::move(whole);
  return absl::OkStatus();
}

absl::Status TableAssembly::Finish() {
  for (const size_t at : split_) {
    absl::Status status = FinishTable(at);
    if (!status.ok()) return status;
  }
  // Release the received parts of split tables, whose bytes are now in the
  // tables.
  for (const size_t at : split_) {
    for (const PieceAt& piece : layout_->tables()[at].pieces) {
      if (!layout_->parts()[piece.part].is_pack()) received_[piece.part] = {};
    }
  }
  return absl::OkStatus();
}

// Returns the values of all wanted tables. Makes the buffers of a pack's views
// in one allocation, because there may be thousands.
tensor::Bundle TableAssembly::Tables() const {
  tensor::Bundle bundle;
  bundle.tensors.reserve(count());
  absl::optional<tensor::BufferParts> views;
  const Tensor* pack = nullptr;  // the part that `views` shares
  for (size_t i = 0; i < count(); ++i) {
    const size_t at = TableAt(i);
    const PlacedDense& table = layout_->tables()[at];
    const PieceAt& first = table.pieces[0];
    if (table.is_split() || !layout_->parts()[first.part].is_pack()) {
      bundle.tensors.push_back({table.name, Table(at)});
      continue;
    }
    const Tensor& part = received_[first.part];
    if (std::exchange(pack, &part) != &part) {
      views.emplace(part.buffer(), part.held_bytes());
    }
    const size_t size = tensor::ElementSize(part.dtype());
    bundle.tensors.push_back(
        {table.name,
         *Tensor::FromBuffer(
             part.dtype(), table.shape,
             views->Share(part.bytes().data() + At(first).first * size,
                          At(first).elements * size))});
  }
  return bundle;
}

Tensor TableAssembly::Table(size_t at) const {
  const PlacedDense& table = layout_->tables()[at];
  if (table.is_split()) return whole_[at];
  const PieceAt& only = table.pieces[0];
  const Tensor& part = received_[only.part];
  if (!layout_->parts()[only.part].is_pack()) return part;
  return SubTensor(part, At(only).first, At(only).elements, table.shape);
}

}  // namespace penstock::ps
