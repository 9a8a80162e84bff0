#include "ps/server/gradients.h"

#include <algorithm>

namespace penstock::ps {

size_t Gradients::held_bytes() const {
  // They have come in one message, which each of them may hold.
  size_t message = 0;
  size_t elements = 0;
  for (const DenseGradient& each : dense) {
    message = std::max(message, each.gradient.held_bytes());
    elements += each.gradient.byte_size();
  }
  size_t rows_bytes = 0;
  for (const RowGradients& each : rows) {
    rows_bytes += each.ids.size() * sizeof(uint64_t);
    rows_bytes += each.values.size() * sizeof(float);
  }
  return std::max(message, elements) + rows_bytes;
}

}  // namespace penstock::ps
