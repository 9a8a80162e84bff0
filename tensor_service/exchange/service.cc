#include "tensor_service/service.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "tensor_service/calls.h"
#include "tensor_service/calls/accept_on_devices.h"
#include "tensor_service/calls/caller.h"
#include "tensor_service/calls/finish.h"
#include "tensor_service/codec.h"
#include "tensor_service/exchange/named_answer.h"
#include "tensor_service/exchange/stream_service.h"
#include "tensor_service/status.h"
#include "tensor_service/tensor.grpc.pb.h"

namespace penstock::tensor {
namespace {

using v1::TensorExchange;

// The base class of the service. Methods with tensors are raw, to bypass
// protobuf's parser.
using Base = TensorExchange::WithRawCallbackMethod_Put<
    TensorExchange::WithRawCallbackMethod_Get<
        TensorExchange::WithRawCallbackMethod_Exchange<
            TensorExchange::WithRawCallbackMethod_PutStream<
                TensorExchange::WithRawCallbackMethod_GetStream<
                    TensorExchange::WithRawCallbackMethod_Delete<
                        TensorExchange::WithCallbackMethod_List<
                            TensorExchange::Service>>>>>>>;

using Rooms = std::vector<TensorStore::AnswerRoom>;

// Keeps the room of an answer until the call has ended. Deletes itself.
class Answer final : public grpc::ServerUnaryReactor {
 public:
  Answer(const absl::Status& status, Rooms rooms) : rooms_(std::move(rooms)) {
    Finish(ToGrpc(status));
  }
  void OnDone() override { delete this; }

 private:
  const Rooms rooms_;
};

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
    Rooms rooms;
    const absl::Status status =
        HandleGet(CallerOf(*context), *request, reply, &rooms);
    return new Answer(status, std::move(rooms));
  }

  grpc::ServerUnaryReactor* Exchange(grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer* request,
                                     grpc::ByteBuffer* reply) override {
    Rooms rooms;
    const absl::Status status =
        HandleExchange(CallerOf(*context), *request, reply, &rooms);
    return new Answer(status, std::move(rooms));
  }

  grpc::ServerReadReactor<grpc::ByteBuffer>* PutStream(
      grpc::CallbackServerContext* context, grpc::ByteBuffer* reply) override {
    return ServePutStream(store_, CallerOf(*context), device_tensors_, reply);
  }

  grpc::ServerWriteReactor<grpc::ByteBuffer>* GetStream(
      grpc::CallbackServerContext* context,
      const grpc::ByteBuffer* request) override {
    return ServeGetStream(store_, CallerOf(*context), *request);
  }

  grpc::ServerUnaryReactor* Delete(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* reply) override {
    return Finish(context, HandleDelete(CallerOf(*context), *request, reply));
  }

  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context,
                                 const v1::ListRequest* request,
                                 v1::ListReply* reply) override {
    const TensorStore::Usage usage = store_->usage();
    // Reserves room for three copies of the names: those of the store, in the
    // reply, and encoded.
    absl::StatusOr<TensorStore::AnswerRoom> room = store_->ReserveAnswer(
        CallerOf(*context), usage.tensors, 3 * usage.name_bytes);
    if (!room.ok()) return Finish(context, room.status());
    for (const NamedTensor& named : store_->All().tensors) {
      v1::ListReply::Entry* entry = reply->add_entries();
      entry->set_name(named.name);
      entry->set_dtype(static_cast<v1::DType>(named.tensor.dtype()));
      for (int64_t dimension : named.tensor.shape()) {
        entry->add_shape(dimension);
      }
    }
    Rooms rooms;
    rooms.push_back(*std::move(room));
    return new Answer(absl::OkStatus(), std::move(rooms));
  }

 private:
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

  absl::Status HandleGet(const std::string& client,
                         const grpc::ByteBuffer& request,
                         grpc::ByteBuffer* reply, Rooms* rooms) {
    v1::GetRequest get;
    absl::StatusOr<Bundle> bundle =
        LendNamed(store_, client, request, &get, rooms);
    if (bundle.ok() && get.max_bytes() > 0 &&
        bundle->byte_size() > get.max_bytes()) {
      return absl::OutOfRangeError(
          absl::StrCat("get: the tensors have ", bundle->byte_size(),
                       " bytes, and the caller takes ", get.max_bytes(),
                       " in one message: use GetStream"));
    }
    return EncodeTo(bundle, reply);
  }

  absl::Status HandleDelete(const std::string& client,
                            const grpc::ByteBuffer& request,
                            grpc::ByteBuffer* reply) {
    v1::DeleteRequest del;
    Rooms rooms;
    absl::StatusOr<std::vector<std::string>> names =
        ReadNames(store_, client, request, &del, &rooms);
    if (!names.ok()) return names.status();
    v1::DeleteReply answer;
    answer.set_deleted(store_->Delete(*names));
    *reply = FromProto(answer);
    return absl::OkStatus();
  }

  absl::Status HandleExchange(const std::string& client,
                              const grpc::ByteBuffer& request,
                              grpc::ByteBuffer* reply, Rooms* rooms) {
    absl::StatusOr<Bundle> bundle =
        Decode(request, /*header=*/nullptr, {}, device_tensors_);
    if (!bundle.ok()) return bundle.status();
    // Reserves room before the exchange, because the exchange cannot be undone.
    // The replaced tensors are not known yet, so the reservation assumes that
    // each tensor is copied.
    size_t more_bytes = bundle->tensors.size() * kCopyBelowBytes;
    for (const NamedTensor& named : bundle->tensors) {
      more_bytes += 2 * named.name.size();
    }
    absl::StatusOr<TensorStore::AnswerRoom> room =
        store_->ReserveAnswer(client, bundle->tensors.size(), more_bytes);
    if (!room.ok()) return room.status();
    rooms->push_back(*std::move(room));
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
  // Accepts device memory only for raw methods: protobuf parses the requests of
  // all other methods.
  AcceptOnDevices(device_tensors,
                  {"/penstock.tensor.v1.TensorExchange/Put",  // and PutStream
                   "/penstock.tensor.v1.TensorExchange/Exchange"});
  return std::make_unique<ServiceImpl>(store, device_tensors);
}

}  // namespace penstock::tensor
