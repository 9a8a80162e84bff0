// Converts between Rendezvous and its messages, for service and client.

#ifndef PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_RENDEZVOUS_CONVERT_H_
#define PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_RENDEZVOUS_CONVERT_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "grpcpp/support/byte_buffer.h"
#include "tensor_service/destination.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/rendezvous.h"
#include "tensor_service/rendezvous.pb.h"
#include "tensor_service/rendezvous_key.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

v1::RendezvousKey ToProto(const RendezvousKey& key);
RendezvousKey FromProto(const v1::RendezvousKey& key);

v1::SendHeader ToProto(const RendezvousKey& key,
                       const Rendezvous::SendOptions& options);
Rendezvous::SendOptions OptionsOf(const v1::SendHeader& header);

// Makes a bundle of one tensor without a name.
Bundle Only(const Tensor& tensor);

// Returns the only tensor of a message, or an empty tensor if the message has
// none and `is_dead`. Returns INVALID_ARGUMENT, beginning with `operation`, for
// any other number of tensors.
absl::StatusOr<Tensor> OnlyTensor(const Bundle& bundle, bool is_dead,
                                  absl::string_view operation);

// Encode and decode a ReceiveReply. The tensor's elements are sent in place.
absl::StatusOr<grpc::ByteBuffer> EncodeReceived(
    const Rendezvous::Received& received);
absl::StatusOr<Rendezvous::Received> DecodeReceived(
    const grpc::ByteBuffer& reply, absl::Span<Destination> destinations = {},
    DeviceTensors device_tensors = DeviceTensors::kToHost);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_RENDEZVOUS_CONVERT_H_
