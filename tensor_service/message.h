// Encodes and decodes tensors with a header as one gRPC message.

#ifndef PENSTOCK_TENSOR_SERVICE_MESSAGE_H_
#define PENSTOCK_TENSOR_SERVICE_MESSAGE_H_

#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/codec.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// The C++ form of a protobuf message such as the following, with the same bytes
// on the wire:
//
//   message Push {
//     repeated penstock.tensor.v1.NamedTensor tensors = 1;
//     Header header = 2;
//   }
//
// Header is the generated class of field 2.
template <typename Header>
struct Message {
  Header header;
  Bundle bundle;
};

template <typename Header>
absl::StatusOr<grpc::ByteBuffer> Encode(const Message<Header>& message) {
  return Encode(message.bundle, message.header.SerializeAsString());
}

template <typename Header>
absl::Status Decode(const grpc::ByteBuffer& bytes, Message<Header>* message,
                    absl::Span<Destination> destinations = {},
                    DeviceTensors device_tensors = DeviceTensors::kToHost) {
  std::string header;
  absl::StatusOr<Bundle> bundle =
      Decode(bytes, &header, destinations, device_tensors);
  if (!bundle.ok()) return bundle.status();
  if (!message->header.ParseFromString(header)) {
    return absl::InvalidArgumentError("decode message: malformed header");
  }
  message->bundle = *std::move(bundle);
  return absl::OkStatus();
}

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_MESSAGE_H_
