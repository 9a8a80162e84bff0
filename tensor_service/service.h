// A TensorStore as the gRPC service TensorExchange.

#ifndef PENSTOCK_TENSOR_SERVICE_SERVICE_H_
#define PENSTOCK_TENSOR_SERVICE_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "tensor_service/store.h"

namespace penstock::tensor {

// Register it with a ServerBuilder; AllowUnlimitedMessages lets it take
// bundles above 4 MiB. `store` must outlive the gRPC server. Callback-based:
// no call holds a thread.
std::unique_ptr<grpc::Service> MakeTensorService(TensorStore* store);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_SERVICE_H_
