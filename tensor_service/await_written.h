// Waits for work on devices before a call takes what it has written.

#ifndef PENSTOCK_TENSOR_SERVICE_AWAIT_WRITTEN_H_
#define PENSTOCK_TENSOR_SERVICE_AWAIT_WRITTEN_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tensor_service/calls.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Blocks until the elements of all tensors on devices are written. Takes the
// wait from `*timeout`, and ends it if the queue is interrupted. Leaves an
// event that fails for the message to report.
//
// Encode() copies some tensors to the host, and the driver's wait for those has
// no timeout. Others are lent, and would be waited for by the transport; but
// which ones shows only when they are encoded.
absl::Status AwaitWritten(CallQueue* queue, const Bundle& bundle,
                          absl::Duration* timeout);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_AWAIT_WRITTEN_H_
