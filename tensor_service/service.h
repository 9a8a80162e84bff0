// Makes a TensorStore the gRPC service TensorExchange.

#ifndef PENSTOCK_TENSOR_SERVICE_SERVICE_H_
#define PENSTOCK_TENSOR_SERVICE_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "tensor_service/store.h"

namespace penstock::tensor {

// Makes a service for the caller to register with a ServerBuilder. For bundles
// above 4 MiB, pass that builder to AllowUnlimitedMessages(). `store` must
// outlive the gRPC server. Each unary call is answered within its callback;
// none waits. A stream takes no thread while it waits for its peer.
std::unique_ptr<grpc::Service> MakeTensorService(TensorStore* store);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_SERVICE_H_
