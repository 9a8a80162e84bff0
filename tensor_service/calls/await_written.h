// Waits until devices have written the tensors that a call sends.

#ifndef PENSTOCK_TENSOR_SERVICE_CALLS_AWAIT_WRITTEN_H_
#define PENSTOCK_TENSOR_SERVICE_CALLS_AWAIT_WRITTEN_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "tensor_service/calls.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Blocks until the elements of all tensors on devices are written. Subtracts
// the wait from `*timeout`, and ends the wait if the queue is interrupted.
// Ignores an event that fails: encoding the message reports the failure.
//
// Encode() copies some tensors to the host and lends others to the transport.
// The driver's wait before a copy has no timeout, so this function waits first.
// Only Encode() knows which tensors are copied, so this function waits for all.
absl::Status AwaitWritten(CallQueue* queue, const Bundle& bundle,
                          absl::Duration* timeout);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CALLS_AWAIT_WRITTEN_H_
