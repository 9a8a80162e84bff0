// Converts between tensors of whole tables and the parts of the servers.

#ifndef PENSTOCK_PS_CLIENT_DENSE_VALUES_H_
#define PENSTOCK_PS_CLIENT_DENSE_VALUES_H_

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ps/client/layout.h"
#include "tensor_service/destination.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Returns `count` elements of `whole` from `first` on, as a tensor of `shape`.
// The result shares the memory of `whole`.
tensor::Tensor SubTensor(const tensor::Tensor& whole, size_t first,
                         size_t count, tensor::Shape shape);

struct PartTensor {
  size_t part;  // index into Layout::parts()
  tensor::Tensor tensor;
};

// Splits tensors of whole tables into parts, in the order of the parts. Copies
// only the tables of packs. Omits parts whose tables were not given.
//
// Each tensor must have the shape of its table. A value must have the type of
// its table, a gradient any type that the servers take. Returns
// INVALID_ARGUMENT, which names the table, if:
// - a tensor does not match its table;
// - a table is given twice;
// - a table of a pack is missing, or its type differs within the pack. The
//   tables of a pack are trained as one.
enum class DenseKind { kValues, kGradients };
absl::StatusOr<std::vector<PartTensor>> SplitTables(
    const Layout& layout, const tensor::Bundle& tables, DenseKind kind);

// Assembles tables from the parts that servers have sent. Takes time
// proportional to the number of parts and split tables. Takes time proportional
// to all tables only if all are wanted. Not thread-safe.
class TableAssembly {
 public:
  // Assembles `tables`, in ascending order, or all tables if nullopt. Values of
  // longer types arrive as `narrow`, if set. Allocates memory for split tables
  // from tensor::DefaultAllocator().
  static absl::StatusOr<TableAssembly> Create(
      const Layout* layout, absl::optional<std::vector<size_t>> tables,
      absl::optional<tensor::DType> narrow);

  // Returns the wanted parts, in ascending order.
  const std::vector<size_t>& parts() const { return parts_; }

  // Returns destinations for the parts of a server that are rows of a split
  // table. The destinations point into that table's memory.
  std::vector<tensor::Destination> DestinationsOf(uint32_t server) const;
  // Stops using the destinations of a server's parts, because an earlier call
  // may still write to them.
  void AbandonDestinations(uint32_t server);

  // Stores a received part, which may be in its destination. Returns INTERNAL
  // unless the tensor has the part's type and shape.
  absl::Status Take(size_t part, tensor::Tensor tensor);
  // Completes the values, once all parts have been taken. Copies each part that
  // is not in its destination.
  absl::Status Finish();

  bool Has(size_t table) const {
    return !tables_.has_value() || is_wanted_[table];
  }

  // Returns the tensor of one table, after Finish(). The tensor may be a view
  // of the table's part, and then shares the part's memory.
  tensor::Tensor Table(size_t table) const;
  // Returns the tensors of all wanted tables, after Finish().
  tensor::Bundle Tables() const;

 private:
  TableAssembly() = default;

  void WantAll();
  void Want(std::vector<size_t> tables);
  size_t count() const {
    return tables_.has_value() ? tables_->size() : layout_->tables().size();
  }
  // Returns the index into Layout::tables() of the i-th wanted table.
  size_t TableAt(size_t i) const {
    return tables_.has_value() ? (*tables_)[i] : i;
  }
  tensor::DType Sent(tensor::DType dtype) const;
  const PartPiece& At(const PieceAt& at) const;
  absl::Status FinishTable(size_t table);

  const Layout* layout_ = nullptr;
  absl::optional<tensor::DType> narrow_;
  absl::optional<std::vector<size_t>> tables_;  // nullopt: all
  std::vector<bool> is_wanted_;                 // by table, unless all are
  std::vector<size_t> split_;                   // the wanted split tables
  std::vector<size_t> parts_;
  std::vector<tensor::Tensor> received_;  // by part
  // The tensors of split tables, by table. Empty if no table is split.
  std::vector<tensor::Tensor> whole_;
  std::vector<bool> is_abandoned_;  // by table
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_DENSE_VALUES_H_
