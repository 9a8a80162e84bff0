#include "tensor_service/rendezvous/rendezvous_convert.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "tensor_service/message.h"

namespace penstock::tensor {

v1::RendezvousKey ToProto(const RendezvousKey& key) {
  v1::RendezvousKey proto;
  proto.set_step(key.step);
  proto.set_name(key.name);
  proto.set_source(key.source);
  proto.set_destination(key.destination);
  return proto;
}

RendezvousKey FromProto(const v1::RendezvousKey& key) {
  return {key.step(), key.name(), key.source(), key.destination()};
}

v1::SendHeader ToProto(const RendezvousKey& key,
                       const Rendezvous::SendOptions& options) {
  v1::SendHeader header;
  *header.mutable_key() = ToProto(key);
  header.set_is_dead(options.is_dead);
  header.set_receivers(options.receivers);
  return header;
}

Rendezvous::SendOptions OptionsOf(const v1::SendHeader& header) {
  Rendezvous::SendOptions options;
  options.is_dead = header.is_dead();
  if (header.has_receivers()) options.receivers = header.receivers();
  return options;
}

Bundle Only(const Tensor& tensor) {
  Bundle bundle;
  bundle.tensors.push_back({"", tensor});
  return bundle;
}

absl::StatusOr<Tensor> OnlyTensor(const Bundle& bundle, bool is_dead,
                                  absl::string_view operation) {
  if (bundle.tensors.size() == 1) return bundle.tensors[0].tensor;
  if (bundle.tensors.empty() && is_dead) return Tensor();
  return absl::InvalidArgumentError(
      absl::StrCat(operation, ": the message has ", bundle.tensors.size(),
                   " tensors; it must have one"));
}

namespace {

// Returns the tensor, with memory that counts until the transport releases it.
Tensor Counted(const Rendezvous::Received& received) {
  const Tensor& tensor = received.tensor;
  if (received.hold == nullptr || tensor.buffer() == nullptr) return tensor;
  // FromBuffer() cannot fail here, because type, shape and size are those of
  // the original.
  return *Tensor::FromBuffer(tensor.dtype(), tensor.shape(),
                             Buffer::With(tensor.buffer(), received.hold));
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> EncodeReceived(
    const Rendezvous::Received& received) {
  Message<v1::ReceiveHeader> message;
  message.header.set_is_dead(received.is_dead);
  message.bundle = Only(Counted(received));
  return Encode(message);
}

absl::StatusOr<Rendezvous::Received> DecodeReceived(
    const grpc::ByteBuffer& reply, absl::Span<Destination> destinations,
    DeviceTensors device_tensors) {
  Message<v1::ReceiveHeader> message;
  absl::Status status = Decode(reply, &message, destinations, device_tensors);
  if (!status.ok()) return status;
  const bool is_dead = message.header.is_dead();
  absl::StatusOr<Tensor> tensor =
      OnlyTensor(message.bundle, is_dead, "receive");
  if (!tensor.ok()) return tensor.status();
  return Rendezvous::Received{*std::move(tensor), is_dead};
}

}  // namespace penstock::tensor
