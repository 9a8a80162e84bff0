#include "tensor_service/stream_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tensor_service/bundle_stream.h"
#include "tensor_service/calls.h"
#include "tensor_service/named_answer.h"
#include "tensor_service/status.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {
namespace {

// What has come of a stream, and the room for it.
class Gathering {
 public:
  Gathering(TensorStore* store, const std::string& client,
            DeviceTensors device_tensors)
      : store_(store),
        room_(store, client),
        joiner_(
            [this](const std::string& name, size_t held_bytes) {
              return room_.Add(name, held_bytes);
            },
            device_tensors) {}

  absl::Status Add(const grpc::ByteBuffer& message) {
    return joiner_.Add(message);
  }

  absl::Status Store(grpc::ByteBuffer* reply) {
    absl::StatusOr<Bundle> bundle = joiner_.Take();
    if (!bundle.ok()) return bundle.status();
    absl::StatusOr<size_t> stored = store_->PutOwn(*bundle, nullptr, &room_);
    if (!stored.ok()) return stored.status();
    v1::PutReply answer;
    answer.set_stored_bytes(*stored);
    *reply = FromProto(answer);
    return absl::OkStatus();
  }

 private:
  TensorStore* const store_;
  StoreReservation room_;
  BundleJoiner joiner_;
};

class PutStream final : public grpc::ServerReadReactor<grpc::ByteBuffer> {
 public:
  PutStream(TensorStore* store, const std::string& client,
            DeviceTensors device_tensors, grpc::ByteBuffer* reply)
      : reply_(reply),
        gathering_(std::make_unique<Gathering>(store, client, device_tensors)) {
    StartRead(&message_);
  }

  // The stream has ended well only if its last message has come: when the
  // caller dies, reads end just as when it is done.
  void OnReadDone(bool ok) override {
    if (!ok) return End(gathering_->Store(reply_));
    absl::Status status = gathering_->Add(message_);
    message_.Clear();
    if (!status.ok()) return End(status);
    StartRead(&message_);
  }

  void OnDone() override { delete this; }

 private:
  // Gives the room back before the caller knows that the call has ended.
  void End(const absl::Status& status) {
    gathering_ = nullptr;
    Finish(ToGrpc(status));
  }

  grpc::ByteBuffer* const reply_;
  std::unique_ptr<Gathering> gathering_;
  grpc::ByteBuffer message_;
};

using Rooms = std::vector<TensorStore::AnswerRoom>;

class GetStream final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  explicit GetStream(const absl::Status& error) { Finish(ToGrpc(error)); }
  GetStream(Bundle bundle, Rooms rooms, size_t max_message_bytes)
      : rooms_(std::move(rooms)),
        cutter_(std::make_unique<BundleCutter>(std::move(bundle),
                                               max_message_bytes)) {
    WriteNext();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(ToGrpc(absl::CancelledError("the caller is gone")));
    if (cutter_->done()) return Finish(grpc::Status::OK);
    WriteNext();
  }

  void OnDone() override { delete this; }

 private:
  void WriteNext() {
    absl::StatusOr<grpc::ByteBuffer> next = cutter_->Next();
    if (!next.ok()) return Finish(ToGrpc(next.status()));
    message_ = *std::move(next);
    StartWrite(&message_);
  }

  const Rooms rooms_;
  const std::unique_ptr<BundleCutter> cutter_;
  grpc::ByteBuffer message_;
};

}  // namespace

grpc::ServerReadReactor<grpc::ByteBuffer>* ServePutStream(
    TensorStore* store, const std::string& client, DeviceTensors device_tensors,
    grpc::ByteBuffer* reply) {
  return new PutStream(store, client, device_tensors, reply);
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* ServeGetStream(
    TensorStore* store, const std::string& client,
    const grpc::ByteBuffer& request) {
  v1::GetStreamRequest get;
  Rooms rooms;
  absl::StatusOr<Bundle> bundle =
      LendNamed(store, client, request, &get, &rooms);
  if (!bundle.ok()) return new GetStream(bundle.status());
  return new GetStream(*std::move(bundle), std::move(rooms),
                       get.max_message_bytes());
}

}  // namespace penstock::tensor
