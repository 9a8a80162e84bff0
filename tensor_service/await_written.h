// Waits for work on devices before a call takes what it has written.

#ifndef PENSTOCK_TENSOR_SERVICE_AWAIT_WRITTEN_H_
#define PENSTOCK_TENSOR_SERVICE_AWAIT_WRITTEN_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tensor_service/calls.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Blocks until the elements of all tensors on devices are written. What is
// copied to the host for a message is waited for by the driver, which knows no
// timeout. So this comes before, as a part of the call: the wait is taken from
// `*timeout`, and can be interrupted. An event that fails is left for the copy
// to report.
absl::Status AwaitWritten(CallQueue* queue, const Bundle& bundle,
                          absl::Duration* timeout);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_AWAIT_WRITTEN_H_
