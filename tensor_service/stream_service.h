// The streaming methods of TensorExchange. For service.cc.

#ifndef PENSTOCK_TENSOR_SERVICE_STREAM_SERVICE_H_
#define PENSTOCK_TENSOR_SERVICE_STREAM_SERVICE_H_

#include <string>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/store.h"

namespace penstock::tensor {

// Each serves one call of its method, which comes from `client`, and deletes
// itself. Has at most one message in memory, beside tensors. What PutStream
// gathers counts against the store's budget; above the client's share of that
// it must not stall (StoreReservation). GetStream keeps the tensors that it was
// asked for until it ends; those that are replaced meanwhile count against the
// budget until then. So give calls a deadline and connections a keepalive where
// peers may stall.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServePutStream(
    TensorStore* store, const std::string& client, DeviceTensors device_tensors,
    grpc::ByteBuffer* reply);
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServeGetStream(
    TensorStore* store, const std::string& client,
    const grpc::ByteBuffer& request);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_STREAM_SERVICE_H_
