// What a checkpoint is of: the tables of a model.

#ifndef PENSTOCK_PS_CHECKPOINT_MODEL_H_
#define PENSTOCK_PS_CHECKPOINT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensor_service/dtype.h"

namespace penstock::ps::checkpoint {

// The numbers are those in files.
enum class TableKind : uint8_t {
  kDense = 1,   // all rows are there from the beginning
  kSparse = 2,  // a row comes when its id is first used
};

// State that the optimizer keeps beside each value, of as many elements.
struct SlotDefinition {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
};

struct TableDefinition {
  std::string name;
  TableKind kind = TableKind::kDense;
  tensor::DType dtype = tensor::DType::kF32;
  // Dense: of the whole table, whose rows are shape[0]; a scalar is one row.
  // Sparse: of one row.
  std::vector<int64_t> shape;
  std::vector<SlotDefinition> slots;
};

struct Model {
  std::vector<TableDefinition> tables;
};

// A table's value is its stream 0, and slot i is its stream i + 1.
size_t Streams(const TableDefinition& table);
tensor::DType StreamType(const TableDefinition& table, size_t stream);

// Dense tables only.
uint64_t Rows(const TableDefinition& table);
uint64_t RowElements(const TableDefinition& table);
// Returns the bytes of a row's value and slots together, which in a sparse
// table lie one behind the other, in the order of their streams.
uint64_t RowBytes(const TableDefinition& table);

// Returns INVALID_ARGUMENT, naming the table, unless every name is of 1 to 4096
// bytes and its table's own, shapes have no negative side, up to 16 of them,
// and no more than 2^56 bytes, tables have up to 16 slots, and a sparse row has
// up to kMaxSparseRowBytes.
absl::Status CheckModel(const Model& model);
constexpr uint64_t kMaxSparseRowBytes = 8 << 20;

// Returns in what `ours` differs from the model in a checkpoint, "" if it does
// not: the first table that differs, and how. The order of tables is none.
std::string Difference(const Model& in_checkpoint, const Model& ours);
// The same of the tables that both have.
std::string DifferenceOfCommon(const Model& in_checkpoint, const Model& ours);
// Returns the names of the tables of `model` that `other` does not have, in
// their order.
std::vector<std::string> NotIn(const Model& other, const Model& model);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_MODEL_H_
