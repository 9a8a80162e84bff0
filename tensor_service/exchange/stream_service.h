// The streaming methods of TensorExchange. For service.cc.

#ifndef PENSTOCK_TENSOR_SERVICE_EXCHANGE_STREAM_SERVICE_H_
#define PENSTOCK_TENSOR_SERVICE_EXCHANGE_STREAM_SERVICE_H_

#include <string>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/store.h"

namespace penstock::tensor {

// Serve one call of a method, from `client`. The returned reactor deletes
// itself. Apart from tensors, a reactor has at most one message in memory.
// Tensors that PutStream has collected count against the store's budget. A
// stream above its client's share is ended if it stalls (StoreReservation).
// GetStream holds the requested tensors until it ends; tensors that are
// replaced in the meantime still count against the budget. If peers may stall,
// give calls a deadline and connections a keepalive.
grpc::ServerReadReactor<grpc::ByteBuffer>* ServePutStream(
    TensorStore* store, const std::string& client, DeviceTensors device_tensors,
    grpc::ByteBuffer* reply);
grpc::ServerWriteReactor<grpc::ByteBuffer>* ServeGetStream(
    TensorStore* store, const std::string& client,
    const grpc::ByteBuffer& request);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_EXCHANGE_STREAM_SERVICE_H_
