#include "tensor_service/rendezvous_client.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/stub_options.h"
#include "tensor_service/calls/await_written.h"
#include "tensor_service/calls/caller.h"
#include "tensor_service/calls/receive_call.h"
#include "tensor_service/codec.h"
#include "tensor_service/ended_steps.h"
#include "tensor_service/message.h"
#include "tensor_service/prepared_destinations.h"
#include "tensor_service/rendezvous/rendezvous_convert.h"
#include "tensor_service/status.h"

namespace penstock::tensor {
namespace {

std::string PathOf(const char* method) {
  return absl::StrCat("/penstock.tensor.v1.TensorRendezvous/", method);
}

// Returns the secret that identifies this process's calls over all connections.
// A forked child has its parent's secret.
const std::string& ClientSecret() {
  static const auto* const secret = [] {
    std::random_device random;  // seeded by the kernel
    auto* text = new std::string;
    for (int i = 0; i < 4; ++i) {
      absl::StrAppend(text, absl::Hex(random(), absl::kZeroPad8));
    }
    return text;
  }();
  return *secret;
}

grpc::ByteBuffer ReceiveRequestOf(const RendezvousKey& key) {
  v1::ReceiveRequest request;
  *request.mutable_key() = ToProto(key);
  return FromProto(request);
}

}  // namespace

struct PendingReceive::Call {
  grpc::ClientContext context;
  grpc::ByteBuffer request;
  grpc::ByteBuffer reply;
  Rendezvous::Callback callback;

  void Done(const grpc::Status& status) {
    absl::Status ended = FromGrpc(
        status, absl::StrCat(PathOf("Receive"), " at ", context.peer()));
    if (ended.ok()) {
      callback(DecodeReceived(reply));
    } else {
      callback(ended);
    }
    // Frees the callback's captures now, because remaining handles may keep
    // this object for longer.
    callback = nullptr;
  }
};

PendingReceive::PendingReceive(std::shared_ptr<Call> call)
    : call_(std::move(call)) {}

void PendingReceive::Cancel() { call_->context.TryCancel(); }

RendezvousClient::RendezvousClient(std::shared_ptr<grpc::Channel> channel,
                                   absl::Duration timeout)
    : channel_(std::move(channel)), timeout_(timeout) {}

absl::StatusOr<grpc::ByteBuffer> RendezvousClient::Call(
    CallQueue* queue, const char* method, const grpc::ByteBuffer& request,
    absl::Duration timeout) {
  queue->Start(channel_, PathOf(method), request, timeout);
  CallQueue::Result result = std::move(queue->Wait().front());
  if (!result.status.ok()) return result.status;
  return std::move(result.reply);
}

absl::Status RendezvousClient::Send(const RendezvousKey& key,
                                    const Tensor& tensor,
                                    const SendOptions& options) {
  absl::Status status = key.Check();
  if (!status.ok()) return status;
  Message<v1::SendHeader> message{ToProto(key, options), Only(tensor)};
  CallQueue queue;
  queue.AddMetadata(kClientSecretKey, ClientSecret());
  absl::Duration timeout = timeout_;
  status = AwaitWritten(&queue, message.bundle, &timeout);
  if (!status.ok()) return status;
  absl::StatusOr<grpc::ByteBuffer> request = Encode(message);
  if (!request.ok()) return request.status();
  return Call(&queue, "Send", *request, timeout).status();
}

absl::StatusOr<RendezvousClient::Received> RendezvousClient::CallInto(
    CallQueue* queue, const char* method, const grpc::ByteBuffer& request,
    absl::Duration timeout, Destination* destination,
    DeviceTensors device_tensors) {
  // Use a destination without a name. The tensor in the message has no name
  // either, because the key contains the name.
  std::vector<Destination> unnamed;
  if (destination != nullptr) unnamed.emplace_back("", destination->into);
  absl::Span<Destination> destinations = absl::MakeSpan(unnamed);
  const auto posted = Post(destinations, /*often=*/false, device_tensors);
  absl::StatusOr<grpc::ByteBuffer> reply =
      CallAndReceive(queue, channel_, PathOf(method), request, timeout,
                     posted.get(), &destinations);
  absl::StatusOr<Received> received =
      reply.ok() ? DecodeReceived(*reply, destinations, device_tensors)
                 : reply.status();
  if (destination != nullptr) {
    destination->used = unnamed[0].used;
    destination->landed = unnamed[0].landed;
  }
  return received;
}

absl::StatusOr<RendezvousClient::Received> RendezvousClient::Receive(
    const RendezvousKey& key, Destination* destination,
    DeviceTensors device_tensors) {
  absl::Status status = key.Check();
  if (!status.ok()) return status;
  CallQueue queue;
  queue.AddMetadata(kClientSecretKey, ClientSecret());
  absl::StatusOr<Received> received =
      CallInto(&queue, "Receive", ReceiveRequestOf(key), timeout_, destination,
               device_tensors);
  if (received.ok()) return received;
  return absl::Status(received.status().code(),
                      absl::StrCat("receive ", key.ToString(), ": ",
                                   received.status().message()));
}

PendingReceive RendezvousClient::Receive(const RendezvousKey& key,
                                         Rendezvous::Callback callback) {
  auto call = std::make_shared<PendingReceive::Call>();
  absl::Status status = key.Check();
  if (!status.ok()) {
    callback(status);
    return PendingReceive(std::move(call));
  }
  call->callback = std::move(callback);
  call->request = ReceiveRequestOf(key);
  call->context.set_deadline(DeadlineAfter(timeout_));
  call->context.set_wait_for_ready(true);
  call->context.AddMetadata(kClientSecretKey, ClientSecret());
  // Starts the call by a temporary stub. The stub may be destroyed before the
  // call ends, because gRPC keeps the channel.
  grpc::GenericStub(channel_).UnaryCall(
      &call->context, PathOf("Receive"), grpc::StubOptions(), &call->request,
      &call->reply, [call](const grpc::Status& status) { call->Done(status); });
  return PendingReceive(std::move(call));
}

absl::StatusOr<RendezvousClient::Received> RendezvousClient::Exchange(
    const RendezvousKey& send, const Tensor& tensor, const SendOptions& options,
    const RendezvousKey& receive, Destination* destination,
    DeviceTensors device_tensors) {
  for (const RendezvousKey* key : {&send, &receive}) {
    absl::Status status = key->Check();
    if (!status.ok()) return status;
  }
  Message<v1::RendezvousExchangeHeader> message;
  *message.header.mutable_send() = ToProto(send, options);
  *message.header.mutable_receive() = ToProto(receive);
  message.bundle = Only(tensor);
  CallQueue queue;
  queue.AddMetadata(kClientSecretKey, ClientSecret());
  absl::Duration timeout = timeout_;
  absl::Status written = AwaitWritten(&queue, message.bundle, &timeout);
  if (!written.ok()) return written;
  absl::StatusOr<grpc::ByteBuffer> request = Encode(message);
  if (!request.ok()) return request.status();
  return CallInto(&queue, "Exchange", *request, timeout, destination,
                  device_tensors);
}

absl::Status RendezvousClient::CancelStep(uint64_t step,
                                          const absl::Status& reason) {
  const absl::Status shortened = EndedSteps::Shortened(reason);
  if (!IsUtf8(shortened.message())) {
    return absl::InvalidArgumentError(absl::StrCat(
        "cancel step ", step, ": the reason's message is not UTF-8"));
  }
  v1::CancelStepRequest request;
  request.set_step(step);
  request.set_code(static_cast<uint32_t>(shortened.code()));
  request.set_message(std::string(shortened.message()));
  CallQueue queue;
  queue.AddMetadata(kClientSecretKey, ClientSecret());
  return Call(&queue, "CancelStep", FromProto(request), timeout_).status();
}

absl::Status RendezvousClient::FinishStep(uint64_t step) {
  v1::FinishStepRequest request;
  request.set_step(step);
  CallQueue queue;
  queue.AddMetadata(kClientSecretKey, ClientSecret());
  return Call(&queue, "FinishStep", FromProto(request), timeout_).status();
}

}  // namespace penstock::tensor
