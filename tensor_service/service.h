// Makes a TensorStore the gRPC service TensorExchange.

#ifndef PENSTOCK_TENSOR_SERVICE_SERVICE_H_
#define PENSTOCK_TENSOR_SERVICE_SERVICE_H_

#include <memory>

#include "grpcpp/impl/codegen/service_type.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/store.h"

namespace penstock::tensor {

// Makes a service for the caller to register with a ServerBuilder. For bundles
// above 4 MiB, pass that builder to AllowUnlimitedMessages(). `store` must
// outlive the gRPC server. Each unary call is answered within its callback;
// none waits. A stream takes no thread while it waits for its peer.
//
// With DeviceTensors::kKeep, tensors that a peer sends from a device are stored
// on that device, in memory of this process's own (OwnOnDevices()), if the
// transport reaches it there; so the call waits for copies on the device. For
// that name DeviceMemory, and a DirectReceiver that accepts (direct_receive.h),
// before the service is made. Otherwise, and from other peers, tensors come to
// the host.
std::unique_ptr<grpc::Service> MakeTensorService(
    TensorStore* store, DeviceTensors device_tensors = DeviceTensors::kToHost);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_SERVICE_H_
