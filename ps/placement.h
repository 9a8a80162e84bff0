// Decides which server holds which variable.

#ifndef PENSTOCK_PS_PLACEMENT_H_
#define PENSTOCK_PS_PLACEMENT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

struct VariableSpec {
  std::string name;
  tensor::DType dtype = tensor::DType::kF32;
  tensor::Shape shape;
};

// Returns the index of each variable's server, in the order of `variables`.
//
// Balances the bytes of the servers: takes the variables by size, the largest
// first, and gives each to the server that has the fewest bytes so far. This is
// "longest processing time first" of R. L. Graham, "Bounds on Multiprocessing
// Timing Anomalies", 1969; the fullest server has at most 4/3 of what it has in
// the best placement.
//
// The result depends on the set of variables, not on their order: variables of
// the same size go by name, and of servers with the same load the lowest is
// taken. So all workers compute the same placement. Returns INVALID_ARGUMENT
// for no servers, an empty or repeated name, or a shape that ByteSize()
// refuses.
absl::StatusOr<std::vector<size_t>> Place(
    absl::Span<const VariableSpec> variables, size_t servers);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_H_
