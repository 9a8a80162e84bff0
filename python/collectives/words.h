// The words by which Python names operations, reductions and types.

#ifndef PENSTOCK_PYTHON_COLLECTIVES_WORDS_H_
#define PENSTOCK_PYTHON_COLLECTIVES_WORDS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "collectives/reduction/reduction.h"
#include "collectives/schedule/plan.h"
#include "tensor_service/dtype.h"

namespace penstock::python {

// Convert a word, as returned by Name(), to its value. Return INVALID_ARGUMENT,
// with the accepted words, for another word.
absl::StatusOr<collectives::Operation> ParseOperation(absl::string_view word);
absl::StatusOr<collectives::ReduceOp> ParseReduceOp(absl::string_view word);
absl::StatusOr<tensor::DType> ParseType(absl::string_view word);

}  // namespace penstock::python

#endif  // PENSTOCK_PYTHON_COLLECTIVES_WORDS_H_
