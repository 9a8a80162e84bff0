// Maps the dense tables of a model to the parts of the servers.

#ifndef PENSTOCK_PS_CLIENT_LAYOUT_H_
#define PENSTOCK_PS_CLIENT_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/optional.h"
#include "ps/model/model.h"
#include "ps/wire/ps.pb.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A piece of a part: consecutive elements of one table.
struct PartPiece {
  size_t table;        // index into Layout::tables()
  size_t first;        // the first element in the part
  size_t table_first;  // the first element in the table
  size_t elements;
};

// A part of a server, which pulls and pushes send as one tensor.
struct PlacedPart {
  uint32_t server;
  std::string name;
  tensor::DType dtype;
  tensor::Shape shape;
  int64_t staleness;  // the staleness of the part's tables
  std::vector<PartPiece> pieces;

  bool is_pack() const { return pieces.size() > 1; }
};

// The address of a piece: its part, and its index in the part.
struct PieceAt {
  size_t part;   // index into Layout::parts()
  size_t piece;  // index into PlacedPart::pieces
};

struct PlacedDense {
  std::string name;
  tensor::DType dtype;
  tensor::Shape shape;
  int64_t staleness;
  size_t elements;
  std::vector<PieceAt> pieces;  // in order, without gaps

  bool is_split() const { return pieces.size() > 1; }
};

// The parts and the dense tables of a model. Immutable.
class Layout {
 public:
  using ServerParts = google::protobuf::RepeatedPtrField<v1::Part>;

  // Makes the layout of the parts that each server reports. Each element of
  // each dense table must be in exactly one part, with the table's type and
  // staleness. Otherwise returns INVALID_ARGUMENT, which names the server and
  // the part.
  static absl::StatusOr<Layout> Create(const Model& model,
                                       const std::vector<ServerParts>& servers);

  const std::vector<PlacedPart>& parts() const { return parts_; }
  const std::vector<PlacedDense>& tables() const { return tables_; }
  // Returns the indices into tables() of tables in several parts. A model with
  // thousands of tables has few of these.
  const std::vector<size_t>& split_tables() const { return split_tables_; }
  // Returns the index into tables() of a dense table, or nullopt.
  absl::optional<size_t> Find(absl::string_view table) const;

 private:
  Layout() = default;

  absl::Status AddPart(uint32_t server, const v1::Part& message);
  absl::Status AddPiece(const v1::Piece& message, PlacedPart* part);
  const PartPiece& At(const PieceAt& at) const {
    return parts_[at.part].pieces[at.piece];
  }
  absl::Status CheckTable(PlacedDense* table) const;

  std::vector<PlacedPart> parts_;
  std::vector<PlacedDense> tables_;
  std::vector<size_t> split_tables_;
  absl::flat_hash_map<std::string, size_t> table_of_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_LAYOUT_H_
