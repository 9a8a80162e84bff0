#include "tensor_service/rendezvous_service.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "tensor_service/calls.h"
#include "tensor_service/calls/accept_on_devices.h"
#include "tensor_service/calls/caller.h"
#include "tensor_service/calls/finish.h"
#include "tensor_service/device_tensors.h"
#include "tensor_service/message.h"
#include "tensor_service/rendezvous.grpc.pb.h"
#include "tensor_service/rendezvous/rendezvous_convert.h"
#include "tensor_service/rendezvous/step_members.h"
#include "tensor_service/status.h"

namespace penstock::tensor {
namespace {

using v1::TensorRendezvous;

// Answers when a receive ends. Deletes itself.
class ReceiveReactor final : public grpc::ServerUnaryReactor {
 public:
  ReceiveReactor(Rendezvous* rendezvous, const RendezvousKey& key,
                 const std::string& client, grpc::ByteBuffer* reply)
      : rendezvous_(rendezvous), reply_(reply) {
    // Starts the receive. gRPC calls OnCancel() only after the constructor has
    // returned, so OnCancel() finds `wait_`. The callback may run earlier, on
    // another thread; gRPC then defers Finish() until this object is
    // registered.
    wait_ = rendezvous->Receive(
        key, [this](auto received) { Done(std::move(received)); }, client);
  }

  void OnCancel() override {
    rendezvous_->Cancel(wait_, absl::CancelledError("the call has ended"));
  }
  void OnDone() override { delete this; }

 private:
  void Done(const absl::StatusOr<Rendezvous::Received>& received) {
    absl::Status status = received.status();
    if (status.ok()) {
      hold_ = received->hold;  // also covers copies by Encode()
      absl::StatusOr<grpc::ByteBuffer> bytes = EncodeReceived(*received);
      status = bytes.status();
      if (status.ok()) *reply_ = *std::move(bytes);
    }
    Finish(ToGrpc(status));
  }

  Rendezvous* const rendezvous_;
  grpc::ByteBuffer* const reply_;
  uint64_t wait_ = 0;
  std::shared_ptr<const void> hold_;
};

// The base class of the service. Methods with tensors are raw, to bypass
// protobuf's parser.
using Base = TensorRendezvous::WithRawCallbackMethod_Send<
    TensorRendezvous::WithRawCallbackMethod_Receive<
        TensorRendezvous::WithRawCallbackMethod_Exchange<
            TensorRendezvous::WithCallbackMethod_CancelStep<
                TensorRendezvous::WithCallbackMethod_FinishStep<
                    TensorRendezvous::Service>>>>>;

class ServiceImpl final : public Base {
 public:
  ServiceImpl(Rendezvous* rendezvous, DeviceTensors device_tensors)
      : rendezvous_(rendezvous), device_tensors_(device_tensors) {}

  grpc::ServerUnaryReactor* Send(grpc::CallbackServerContext* context,
                                 const grpc::ByteBuffer* request,
                                 grpc::ByteBuffer* reply) override {
    Message<v1::SendHeader> message;
    absl::Status status = Decode(*request, &message, {}, device_tensors_);
    if (status.ok()) {
      status = HandleSend(*context, message.header, message.bundle);
    }
    if (status.ok()) *reply = tensor::FromProto(v1::SendReply());
    return Finish(context, status);
  }

  grpc::ServerUnaryReactor* Receive(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* reply) override {
    v1::ReceiveRequest receive;
    absl::Status status = tensor::ToProto(*request, &receive);
    if (!status.ok()) return Finish(context, status);
    return Await(*context, tensor::FromProto(receive.key()), reply);
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    Message<v1::RendezvousExchangeHeader> message;
    absl::Status status = Decode(*request, &message, {}, device_tensors_);
    const RendezvousKey key = tensor::FromProto(message.header.receive());
    // Checks both keys before sending anything.
    if (status.ok()) status = key.Check();
    if (status.ok()) {
      status = HandleSend(*context, message.header.send(), message.bundle);
    }
    if (!status.ok()) return Finish(context, status);
    return Await(*context, key, reply);
  }

  grpc::ServerUnaryReactor* CancelStep(grpc::CallbackServerContext* context,
                                       const v1::CancelStepRequest* request,
                                       v1::CancelStepReply* reply) override {
    return Finish(context, HandleCancelStep(*context, *request));
  }

  grpc::ServerUnaryReactor* FinishStep(grpc::CallbackServerContext* context,
                                       const v1::FinishStepRequest* request,
                                       v1::FinishStepReply* reply) override {
    absl::Status status = CheckMayEnd(*context, "finish step", *request);
    if (status.ok()) rendezvous_->FinishStep(request->step());
    return Finish(context, status);
  }

 private:
  grpc::ServerUnaryReactor* Await(const grpc::ServerContextBase& context,
                                  const RendezvousKey& key,
                                  grpc::ByteBuffer* reply) {
    const std::string client = CallerOf(context);
    members_.Join(client, MemberOf(context), key.step);
    return new ReceiveReactor(rendezvous_, key, client, reply);
  }

  absl::Status HandleSend(const grpc::ServerContextBase& context,
                          const v1::SendHeader& header, const Bundle& bundle) {
    const RendezvousKey key = tensor::FromProto(header.key());
    // Checks the key first, because later errors quote it.
    absl::Status status = key.Check();
    if (!status.ok()) return status;
    absl::StatusOr<Tensor> tensor = OnlyTensor(
        bundle, header.is_dead(), absl::StrCat("send ", key.ToString()));
    if (!tensor.ok()) return tensor.status();
    // Copies a tensor on a device, because the tensor may be kept, and a peer's
    // lent memory cannot be lent again.
    absl::StatusOr<Bundle> own = OwnOnDevices(Only(*tensor));
    if (!own.ok()) return own.status();
    tensor = own->tensors[0].tensor;
    const std::string client = CallerOf(context);
    members_.Join(client, MemberOf(context), key.step);
    return rendezvous_->Send(key, *tensor, OptionsOf(header), client);
  }

  // Returns an error unless the request names a step in which the caller takes
  // part.
  template <typename Request>
  absl::Status CheckMayEnd(const grpc::ServerContextBase& context,
                           absl::string_view operation,
                           const Request& request) const {
    if (!request.has_step()) {
      return absl::InvalidArgumentError(
          absl::StrCat(operation, ": no step is set; set it, to 0 too"));
    }
    if (members_.Has(MemberOf(context), request.step())) {
      return absl::OkStatus();
    }
    return absl::PermissionDeniedError(absl::StrCat(
        operation, " ", request.step(),
        ": this client has neither sent nor received in it; only those who "
        "take part may end it"));
  }

  absl::Status HandleCancelStep(const grpc::ServerContextBase& context,
                                const v1::CancelStepRequest& request) {
    constexpr uint32_t kLastCode = grpc::StatusCode::UNAUTHENTICATED;
    if (request.code() == 0 || request.code() > kLastCode) {
      return absl::InvalidArgumentError(absl::StrCat(
          "cancel step ", request.step(), ": code ", request.code(),
          " is no error; it must be 1 to ", kLastCode));
    }
    absl::Status allowed = CheckMayEnd(context, "cancel step", request);
    if (!allowed.ok()) return allowed;
    return rendezvous_->CancelStep(
        request.step(),
        absl::Status(static_cast<absl::StatusCode>(request.code()),
                     request.message()));
  }

  Rendezvous* const rendezvous_;
  const DeviceTensors device_tensors_;
  StepMembers members_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeRendezvousService(
    Rendezvous* rendezvous, DeviceTensors device_tensors) {
  // Accepts device memory only for raw methods: protobuf parses the requests of
  // all other methods.
  AcceptOnDevices(device_tensors,
                  {"/penstock.tensor.v1.TensorRendezvous/Send",
                   "/penstock.tensor.v1.TensorRendezvous/Exchange"});
  return std::make_unique<ServiceImpl>(rendezvous, device_tensors);
}

}  // namespace penstock::tensor
