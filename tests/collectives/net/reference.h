// Runs the schedules of all ranks in memory, on bytes.

#ifndef PENSTOCK_TESTS_COLLECTIVES_NET_REFERENCE_H_
#define PENSTOCK_TESTS_COLLECTIVES_NET_REFERENCE_H_

#include <cstdint>
#include <vector>

#include "collectives/reduction/reduction.h"
#include "collectives/schedule/plan.h"
#include "tensor_service/dtype.h"

namespace penstock::collectives {

// The contents of the buffers of all ranks.
using Memory = std::vector<std::vector<uint8_t>>;

// Runs `plan` on `data`. `input` is the second buffer of all_to_all. An average
// becomes a sum.
void RunInMemory(const Plan& plan, tensor::DType dtype, ReduceOp op,
                 const Memory& input, Memory* data);

}  // namespace penstock::collectives

#endif  // PENSTOCK_TESTS_COLLECTIVES_NET_REFERENCE_H_
