// The tables of a model, as checkpoints describe them.

#ifndef PENSTOCK_PS_CHECKPOINT_MODEL_H_
#define PENSTOCK_PS_CHECKPOINT_MODEL_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "tensor_service/dtype.h"

namespace penstock::ps::checkpoint {

// The kinds of tables. The numbers are part of the file format.
enum class TableKind : uint8_t {
  kDense = 1,   // all rows exist from the beginning
  kSparse = 2,  // the first use of an id creates its row
};

// A state of the optimizer, such as a momentum. Has one element for each
// element of the table's value.
struct SlotDefinition {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
};

struct TableDefinition {
  std::string name;
  TableKind kind = TableKind::kDense;
  tensor::DType dtype = tensor::DType::kF32;
  // The shape. For a dense table, the whole table's shape, with shape[0] rows;
  // a scalar is one row. For a sparse table, the shape of one row.
  std::vector<int64_t> shape;
  std::vector<SlotDefinition> slots;
};

struct Model {
  std::vector<TableDefinition> tables;
};

// Returns the number of a table's streams. Stream 0 is the table's value, and
// stream i + 1 is slot i.
size_t Streams(const TableDefinition& table);
tensor::DType StreamType(const TableDefinition& table, size_t stream);

// Returns the number of rows of a dense table.
uint64_t Rows(const TableDefinition& table);
uint64_t RowElements(const TableDefinition& table);
// Returns the bytes of a row's value and slots together. A sparse table stores
// them concatenated, in the order of their streams.
uint64_t RowBytes(const TableDefinition& table);

// Returns INVALID_ARGUMENT, which names the table, unless:
// - table names, and slot names in a table, are unique, of 1 to 4096 bytes;
// - every shape has at most 16 dimensions, none negative;
// - every table has less than 2^56 bytes and at most 16 slots;
// - every sparse row has at most kMaxSparseRowBytes.
absl::Status CheckModel(const Model& model);
constexpr uint64_t kMaxSparseRowBytes = 8 << 20;

// Compares the tables of two models, in any order. Returns a text about the
// first table that differs or that only one model has, or "" if all are equal.
std::string Difference(const Model& in_checkpoint, const Model& ours);
// Like Difference(), but only for the tables that both models have.
std::string DifferenceOfCommon(const Model& in_checkpoint, const Model& ours);
// Returns the names of the tables that `model` has and `other` lacks, in the
// order of `model`.
std::vector<std::string> NotIn(const Model& other, const Model& model);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_MODEL_H_
