// Which server holds which variable.

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

// For each variable, in the order given, the index of its server.
//
// Balances bytes: the largest variable goes first, each to the server that
// holds least so far (longest processing time first: R. L. Graham, "Bounds on
// Multiprocessing Timing Anomalies", 1969; never worse than 4/3 of the best).
// Ties go by name and by the lower server, so every party that knows the same
// variables computes the same placement, in whatever order it lists them.
// INVALID_ARGUMENT for no servers, an empty or repeated name, a bad shape.
absl::StatusOr<std::vector<size_t>> Place(
    absl::Span<const VariableSpec> variables, size_t servers);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PLACEMENT_H_
