// Ends a call of a service without waiting.

#ifndef PENSTOCK_TENSOR_SERVICE_CALLS_FINISH_H_
#define PENSTOCK_TENSOR_SERVICE_CALLS_FINISH_H_

#include "absl/status/status.h"
#include "grpcpp/server_context.h"
#include "grpcpp/support/server_callback.h"
#include "tensor_service/status.h"

namespace penstock::tensor {

// Ends the call with `status`. Returns the reactor that a method of a service
// returns to gRPC.
inline grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                        const absl::Status& status) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(status));
  return reactor;
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_CALLS_FINISH_H_
