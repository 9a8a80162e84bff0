// Tensors of whole tables, and the parts of servers in which they travel.

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

// Returns `count` elements of a tensor, from `first` on, as one of that shape.
// Shares the memory.
tensor::Tensor SubTensor(const tensor::Tensor& whole, size_t first,
                         size_t count, tensor::Shape shape);

struct PartTensor {
  size_t part;  // its place in Layout::parts()
  tensor::Tensor tensor;
};

// Takes tensors of whole tables apart, in the order of the parts. Copies only
// what goes into a pack. All have the shapes of their tables; values have their
// types, too, and gradients any that the servers take. A part of which there is
// nothing is left out. Returns INVALID_ARGUMENT, which names the table, for
// what does not fit, a table that comes twice, and a pack of which a table is
// missing or has another type than others: its tables are trained as one.
enum class DenseKind { kValues, kGradients };
absl::StatusOr<std::vector<PartTensor>> SplitTables(
    const Layout& layout, const tensor::Bundle& tables, DenseKind kind);

// Puts together what servers have sent. Takes time by the number of parts and
// of split tables; by that of all tables only where the tensors of all are
// wanted. Not thread-safe.
class TableAssembly {
 public:
  // For these tables, in ascending order, or all; values of longer types come
  // in `narrow`, if that is set. Makes memory for split ones, from
  // tensor::DefaultAllocator().
  static absl::StatusOr<TableAssembly> Create(
      const Layout* layout, absl::optional<std::vector<size_t>> tables,
      absl::optional<tensor::DType> narrow);

  // The parts that are wanted, in ascending order.
  const std::vector<size_t>& parts() const { return parts_; }

  // Returns destinations for some of the parts of a server: those that are rows
  // of a split table. They are that table's memory.
  std::vector<tensor::Destination> DestinationsOf(uint32_t server) const;
  // A call may yet write to those that a server's parts had: they are not used.
  void AbandonDestinations(uint32_t server);

  // Takes a part, which may lie in its destination. Returns INTERNAL if it is
  // not of the type and shape that the server has said.
  absl::Status Take(size_t part, tensor::Tensor tensor);
  // Once all parts are there, copies what does not lie where it belongs.
  absl::Status Finish();

  bool Has(size_t table) const {
    return !tables_.has_value() || is_wanted_[table];
  }

  // After Finish(): returns the tensor of one of the tables. It shares memory
  // with the part, of which it may be a view.
  tensor::Tensor Table(size_t table) const;
  // The same of all of them.
  tensor::Bundle Tables() const;

 private:
  TableAssembly() = default;

  void WantAll();
  void Want(std::vector<size_t> tables);
  size_t count() const {
    return tables_.has_value() ? tables_->size() : layout_->tables().size();
  }
  // The place in Layout::tables() of the i-th that is wanted.
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
  std::vector<size_t> split_;                   // those of them that are split
  std::vector<size_t> parts_;
  std::vector<tensor::Tensor> received_;  // by part
  // By table, of those that are split; empty if none is.
  std::vector<tensor::Tensor> whole_;
  std::vector<bool> is_abandoned_;  // the same
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_DENSE_VALUES_H_
