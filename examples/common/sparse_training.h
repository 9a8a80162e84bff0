// What clients do that train or read sparse tables.

#ifndef PENSTOCK_EXAMPLES_COMMON_SPARSE_TRAINING_H_
#define PENSTOCK_EXAMPLES_COMMON_SPARSE_TRAINING_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/client/reader.h"
#include "ps/client/worker.h"
#include "ps/model/model.h"
#include "tensor_service/tensor.h"

namespace penstock::examples {

// Returns the id of the row of a feature or word: XXH3-64 of its name. So
// nobody needs a dictionary, and all processes agree.
uint64_t IdOf(absl::string_view name);

// Returns the staleness that a flag says: a number of steps, or "unlimited".
// Returns INVALID_ARGUMENT for anything else.
absl::StatusOr<int64_t> StalenessOf(absl::string_view text);

// Joins the training of `model`, which has sparse tables only, as the worker of
// that rank. Rank 0 defines it; the others wait until it has.
absl::StatusOr<std::unique_ptr<ps::Worker>> Join(
    const std::vector<std::string>& servers, uint32_t rank,
    const ps::Model& model);

// Ends a training of `steps` steps: waits until all servers allow that many,
// and leaves. A worker that left at once might be gone before another has come,
// and servers first wait until all they expect are there together.
absl::Status Finish(uint64_t steps, ps::Worker* worker);

// Returns the rows of `ids`, [ids, dim], as they are once `step` steps have
// been made. Takes no part in the training. Its elements can be accessed.
absl::StatusOr<tensor::Tensor> ReadRows(const std::vector<std::string>& servers,
                                        const std::string& table,
                                        const std::vector<uint64_t>& ids,
                                        uint64_t step);

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_SPARSE_TRAINING_H_
