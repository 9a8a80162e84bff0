// Trains or reads sparse tables: code that the clients share.

#ifndef PENSTOCK_EXAMPLES_COMMON_SPARSE_TRAINING_H_
#define PENSTOCK_EXAMPLES_COMMON_SPARSE_TRAINING_H_

#include <cstdint>
#include <functional>
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

// Returns the id of the row of a feature or word: XXH3-64 of its name. Thus no
// dictionary is needed, and all processes agree.
uint64_t IdOf(absl::string_view name);

// Parses a staleness: a number of steps, or "unlimited". Returns
// INVALID_ARGUMENT for any other text.
absl::StatusOr<int64_t> StalenessOf(absl::string_view text);

// Joins the training of `model` as the worker of `rank`. `model` has only
// sparse tables. Rank 0 defines the model; other ranks wait for the definition.
absl::StatusOr<std::unique_ptr<ps::Worker>> Join(
    const std::vector<std::string>& servers, uint32_t rank,
    const ps::Model& model);

// Takes the step `*step`, and sets `*step` to the next one.
using TakeStep =
    std::function<absl::Status(ps::Worker* worker, uint64_t* step)>;

// Trains from the clock of `worker` until step `steps`. If servers were
// restarted, continues at the step of the checkpoint; see ps::Reattach().
// Leaves only once all servers allow step `steps`, and thus all expected
// workers have joined: a worker that left earlier would be missing when the
// servers wait for all workers.
absl::Status Train(uint64_t steps, const TakeStep& take_step,
                   std::unique_ptr<ps::Worker> worker);

// Returns the rows of `ids`, [ids, dim], after `step` steps, with aligned
// elements. Takes no part in the training.
absl::StatusOr<tensor::Tensor> ReadRows(const std::vector<std::string>& servers,
                                        const std::string& table,
                                        const std::vector<uint64_t>& ids,
                                        uint64_t step);

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_SPARSE_TRAINING_H_
