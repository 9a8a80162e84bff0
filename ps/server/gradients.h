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
  size_t part;  // the place of the part in Tables::parts()
  tensor::Tensor gradient;
};

struct RowGradients {
  size_t rows;                // its place in LocalModel::rows()
  std::vector<uint64_t> ids;  // each once
  // f32, aligned: a row for each id. It may lie in the message it came in.
  tensor::Tensor values;
  sparse::Reservation reserved;  // room for the rows that they make
};

// Each part and each table at most once. Missing ones have no gradient.
struct Gradients {
  std::vector<DenseGradient> dense;
  std::vector<RowGradients> rows;

  // Returns how much memory they keep from being freed.
  size_t held_bytes() const;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_GRADIENTS_H_
