// The checked gradients of one push.

#ifndef PENSTOCK_PS_SERVER_GRADIENTS_H_
#define PENSTOCK_PS_SERVER_GRADIENTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ps/sparse/table.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

struct DenseGradient {
  size_t part;  // index of the part in Tables::parts()
  tensor::Tensor gradient;
};

struct RowGradients {
  size_t rows;                // index of the table in LocalModel::rows()
  std::vector<uint64_t> ids;  // each once
  // One row of f32 elements per id, aligned. May be a view of the received
  // message.
  tensor::Tensor values;
  sparse::Reservation reserved;  // room for rows that `ids` will create
};

// The gradients of one push. Each part and each table occurs at most once. An
// absent part or table has no gradient.
struct Gradients {
  std::vector<DenseGradient> dense;
  std::vector<RowGradients> rows;

  // Returns the bytes of memory that these gradients keep allocated.
  size_t held_bytes() const;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_GRADIENTS_H_
