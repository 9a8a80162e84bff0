#include "tensor_service/service.h"

#include <string>
#include <utility>
#include <vector>

#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "tensor_service/accept_on_devices.h"
#include "tensor_service/calls.h"
#include "tensor_service/codec.h"
#include "tensor_service/status.h"
#include "tensor_service/stream_service.h"
#include "tensor_service/tensor.grpc.pb.h"

namespace penstock::tensor {
namespace {

using v1::TensorExchange;

// Methods that carry tensors are raw: they bypass protobuf's parser.
using Base = TensorExchange::WithRawCallbackMethod_Put<
    TensorExchange::WithRawCallbackMethod_Get<
        TensorExchange::WithRawCallbackMethod_Exchange<
            TensorExchange::WithRawCallbackMethod_PutStream<
                TensorExchange::WithRawCallbackMethod_GetStream<
                    TensorExchange::WithCallbackMethod_Delete<
                        TensorExchange::WithCallbackMethod_List<
                            TensorExchange::Service>>>>>>>;

class ServiceImpl final : public Base {
 public:
  ServiceImpl(TensorStore* store, DeviceTensors device_tensors)
      : store_(store), device_tensors_(device_tensors) {}

  grpc::ServerUnaryReactor* Put(grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer* request,
                                grpc::ByteBuffer* reply) override {
    return Finish(context, HandlePut(*request, reply));
  }

  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context,
                                const grpc::ByteBuffer* request,
                                grpc::ByteBuffer* reply) override {
    return Finish(context, HandleGet(*request, reply));
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    return Finish(context, HandleExchange(*request, reply));
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* PutStream(
      grpc::CallbackServerContext* context, grpc::ByteBuffer* reply) override {
    return ServePutStream(store_, device_tensors_, reply);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetStream(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override {
    return ServeGetStream(*store_, *request);
  }

  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const v1::DeleteRequest* request,
                                   v1::DeleteReply* reply) override {
    std::vector<std::string> names(request->names().begin(),
                                   request->names().end());
    reply->set_deleted(store_->Delete(names));
    return Finish(context, absl::OkStatus());
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListRequest* request,
                                 v1::ListReply* reply) override {
    for (const NamedTensor& named : store_->All().tensors) {
      v1::ListReply::Entry* entry = reply->add_entries();
      entry->set_name(named.name);
      entry->set_dtype(static_cast<v1::DType>(named.tensor.dtype()));
      for (int64_t dimension : named.tensor.shape()) {
        entry->add_shape(dimension);
      }
    }
    return Finish(context, absl::OkStatus());
  }

 private:
  static grpc::ServerUnaryReactor* Finish(grpc::CallbackServerContext* context,
                                          const absl::Status& status) {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(ToGrpc(status));
    return reactor;
  }

  static absl::Status EncodeTo(const absl::StatusOr<Bundle>& bundle,
                               grpc::ByteBuffer* reply) {
    if (!bundle.ok()) return bundle.status();
    absl::StatusOr<grpc::ByteBuffer> bytes = Encode(*bundle);
    if (!bytes.ok()) return bytes.status();
    *reply = *std::move(bytes);
    return absl::OkStatus();
  }

  absl::Status HandlePut(const grpc::ByteBuffer& request,
                         grpc::ByteBuffer* reply) {
    absl::StatusOr<Bundle> bundle =
        Decode(request, /*header=*/nullptr, {}, device_tensors_);
    if (!bundle.ok()) return bundle.status();
    absl::StatusOr<size_t> stored = store_->Put(*bundle);
    if (!stored.ok()) return stored.status();
    v1::PutReply answer;
    answer.set_stored_bytes(*stored);
    *reply = FromProto(answer);
    return absl::OkStatus();
  }

  absl::Status HandleGet(const grpc::ByteBuffer& request,
                         grpc::ByteBuffer* reply) {
    v1::GetRequest get;
    absl::Status status = ToProto(request, &get);
    if (!status.ok()) return status;
    std::vector<std::string> names(get.names().begin(), get.names().end());
    return EncodeTo(store_->Get(names), reply);
  }

  absl::Status HandleExchange(const grpc::ByteBuffer& request,
                              grpc::ByteBuffer* reply) {
    absl::StatusOr<Bundle> bundle =
        Decode(request, /*header=*/nullptr, {}, device_tensors_);
    if (!bundle.ok()) return bundle.status();
    Bundle replaced;
    absl::StatusOr<size_t> stored = store_->Put(*bundle, &replaced);
    if (!stored.ok()) return stored.status();
    return EncodeTo(replaced, reply);
  }

  TensorStore* const store_;
  const DeviceTensors device_tensors_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeTensorService(TensorStore* store,
                                                 DeviceTensors device_tensors) {
  // Not the whole service: of other methods protobuf reads the requests.
  AcceptOnDevices(device_tensors,
                  {"/penstock.tensor.v1.TensorExchange/Put",  // and PutStream
                   "/penstock.tensor.v1.TensorExchange/Exchange"});
  return std::make_unique<ServiceImpl>(store, device_tensors);
}

}  // namespace penstock::tensor
