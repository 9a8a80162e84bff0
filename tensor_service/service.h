// Serves a TensorStore as the gRPC service TensorExchange.

#ifndef PENSTOCK_TENSOR_SERVICE_SERVICE_H_
#define PENSTOCK_TENSOR_SERVICE_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/store.h"

namespace penstock::tensor {

// Makes a service, which the caller registers with a ServerBuilder. For bundles
// above 4 MiB, pass the builder to AllowUnlimitedMessages(). `store` must
// outlive the gRPC server. Each unary call is answered within its callback,
// without waiting. A stream occupies no thread while waiting for its peer.
//
// With DeviceTensors::kKeep, tensors that a peer sends from a device are stored
// on that device, in this process's own memory (OwnOnDevices()), if the
// transport reaches the device. The call then waits for copies on the device.
// This requires, before the service is made, a DeviceMemory and a
// DirectReceiver that accepts requests on devices (direct_receive.h). In all
// other cases, tensors are received on the host.
std::unique_ptr<grpc::Service> MakeTensorService(
    TensorStore* store, DeviceTensors device_tensors = DeviceTensors::kToHost);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_SERVICE_H_
