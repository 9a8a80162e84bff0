// Converts ids and rows of sparse tables from and to tensors of a message.

#ifndef PENSTOCK_PS_SERVER_ROW_TENSORS_H_
#define PENSTOCK_PS_SERVER_ROW_TENSORS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Returns the ids in an int64 [n] tensor. An element has the bits of an
// unsigned id. Returns INVALID_ARGUMENT, with the name of the table, for
// another type or shape.
absl::StatusOr<std::vector<uint64_t>> IdsIn(const tensor::NamedTensor& named);

// Returns the elements of a [rows, dim] tensor of f32, f16 or bf16 as aligned
// f32. Does not copy elements that are aligned f32 already. Returns
// INVALID_ARGUMENT, with the name of the table, for another type or shape, and
// RESOURCE_EXHAUSTED if there is no memory.
absl::StatusOr<tensor::Tensor> RowsIn(const tensor::NamedTensor& named,
                                      size_t rows, size_t dim);

// Returns the elements of an aligned f32 tensor.
absl::Span<const float> FloatsOf(const tensor::Tensor& aligned);

// Returns a printable form of a table's name, which a peer may have chosen.
std::string Shown(absl::string_view table);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_ROW_TENSORS_H_
