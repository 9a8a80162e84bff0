#include "ps/client/layout.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"

namespace penstock::ps {
namespace {

constexpr size_t kMaxNameBytesShown = 100;

std::string Shown(absl::string_view name) {
  return base::Printable(name, kMaxNameBytesShown);
}

uint64_t RowsOf(const tensor::Shape& shape) {
  return shape.empty() ? 1 : static_cast<uint64_t>(shape[0]);
}

}  // namespace

absl::StatusOr<Layout> Layout::Create(const Model& model,
                                      const std::vector<ServerParts>& servers) {
  Layout layout;
  for (const TableSpec& spec : model.tables) {
    if (!spec.is_dense()) continue;
    const auto& dense = absl::get<DenseSpec>(spec.rows);
    absl::StatusOr<size_t> bytes = tensor::ByteSize(dense.dtype, dense.shape);
    if (!bytes.ok()) return bytes.status();
    layout.table_of_.emplace(spec.name, layout.tables_.size());
    layout.tables_.push_back({spec.name,
                              dense.dtype,
                              dense.shape,
                              spec.staleness,
                              *bytes / tensor::ElementSize(dense.dtype),
                              {}});
  }
  for (size_t server = 0; server < servers.size(); ++server) {
    for (const v1::Part& part : servers[server]) {
      absl::Status status = layout.AddPart(static_cast<uint32_t>(server), part);
      if (!status.ok()) {
        return absl::InvalidArgumentError(
            absl::StrCat("server ", server, ": part ", Shown(part.name()), ": ",
                         status.message()));
      }
    }
  }
  for (size_t at = 0; at < layout.tables_.size(); ++at) {
    absl::Status status = layout.CheckTable(&layout.tables_[at]);
    if (!status.ok()) return status;
    if (layout.tables_[at].is_split()) layout.split_tables_.push_back(at);
  }
  return layout;
}

absl::optional<size_t> Layout::Find(absl::string_view table) const {
  auto found = table_of_.find(table);
  if (found == table_of_.end()) return absl::nullopt;
  return found->second;
}

absl::Status Layout::AddPart(uint32_t server, const v1::Part& message) {
  if (!tensor::IsDType(message.dtype())) {
    return absl::InvalidArgumentError("it is of no type");
  }
  PlacedPart part;
  part.server = server;
  part.name = message.name();
  part.dtype = static_cast<tensor::DType>(message.dtype());
  part.shape.assign(message.shape().begin(), message.shape().end());
  absl::StatusOr<size_t> bytes = tensor::ByteSize(part.dtype, part.shape);
  if (!bytes.ok()) return bytes.status();
  for (const v1::Piece& piece : message.pieces()) {
    absl::Status status = AddPiece(piece, &part);
    if (!status.ok()) return status;
  }
  const size_t end = part.pieces.empty() ? 0
                                         : part.pieces.back().first +
                                               part.pieces.back().elements;
  if (part.pieces.empty() || end * tensor::ElementSize(part.dtype) != *bytes) {
    return absl::InvalidArgumentError("its pieces are not all of it");
  }
  parts_.push_back(std::move(part));
  return absl::OkStatus();
}

absl::Status Layout::AddPiece(const v1::Piece& message, PlacedPart* part) {
  const absl::optional<size_t> at = Find(message.table());
  if (!at.has_value()) {
    return absl::InvalidArgumentError(
        absl::StrCat("the model has no dense table ", Shown(message.table())));
  }
  PlacedDense& table = tables_[*at];
  const uint64_t rows = RowsOf(table.shape);
  if (part->pieces.empty()) part->staleness = table.staleness;
  if (table.dtype != part->dtype || table.staleness != part->staleness ||
      message.first_row() > rows ||
      message.rows() > rows - message.first_row()) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", Shown(table.name),
                     " is of another type or staleness, or has fewer rows"));
  }
  const size_t row = rows == 0 ? 0 : table.elements / rows;
  PartPiece piece;
  piece.table = *at;
  piece.first = part->pieces.empty()
                    ? 0
                    : part->pieces.back().first + part->pieces.back().elements;
  piece.table_first = message.first_row() * row;
  piece.elements = message.rows() * row;
  table.pieces.push_back({parts_.size(), part->pieces.size()});
  part->pieces.push_back(piece);
  return absl::OkStatus();
}

absl::Status Layout::CheckTable(PlacedDense* table) const {
  std::sort(table->pieces.begin(), table->pieces.end(),
            [this](const PieceAt& a, const PieceAt& b) {
              return At(a).table_first < At(b).table_first;
            });
  size_t next = 0;
  for (const PieceAt& at : table->pieces) {
    if (At(at).table_first != next) {
      return absl::InvalidArgumentError(
          absl::StrCat("table ", Shown(table->name), ": element ", next,
                       " is in no part, or in two"));
    }
    next += At(at).elements;
  }
  if (table->pieces.empty() || next != table->elements) {
    return absl::InvalidArgumentError(
        absl::StrCat("table ", Shown(table->name), ": of ", table->elements,
                     " elements the servers have ", next));
  }
  return absl::OkStatus();
}

}  // namespace penstock::ps
