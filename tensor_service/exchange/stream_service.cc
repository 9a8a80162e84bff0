#include "tensor_service/exchange/stream_service.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "tensor_service/calls.h"
#include "tensor_service/codec/bundle_stream.h"
#include "tensor_service/exchange/named_answer.h"
#include "tensor_service/status.h"
#include "tensor_service/tensor.pb.h"

namespace penstock::tensor {
namespace {

// The collected tensors of a stream, and their room.
class Gathering {
 public:
  Gathering(TensorStore* store, const std::string& client,
            std::function<void()> evict, DeviceTensors device_tensors)
      : store_(store),
        room_(store, client, std::move(evict)),
        joiner_(
            [this](const std::string& name, size_t held_bytes) {
              return room_.Add(name, held_bytes);
            },
            device_tensors) {}

  absl::Status Add(const grpc::ByteBuffer& message) {
    room_.Arrived(message.Length());
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
      : reply_(reply), handle_(std::make_shared<Handle>()) {
    const std::weak_ptr<Handle> weak = handle_;
    handle_->Begin(this,
                   std::make_unique<Gathering>(
                       store, client, [weak] { Evict(weak); }, device_tensors));
    StartRead(&message_);
  }

  // Adds the message, or stores the bundle at the end of the stream. A read
  // ends in the same way if the caller dies and if the caller is done.
  // Therefore storing succeeds only if the last message has arrived.
  void OnReadDone(bool ok) override {
    const std::shared_ptr<Handle> handle = handle_;  // may outlive this stream
    Gathering* const gathering = handle->Enter();
    if (gathering == nullptr) return;  // the stream was evicted
    absl::Status status =
        ok ? gathering->Add(message_) : gathering->Store(reply_);
    message_.Clear();
    if (ok && status.ok()) {
      StartRead(&message_);
      return handle->Leave();
    }
    // Frees the room before the caller learns that the call has ended.
    handle->Take(/*is_busy=*/true);
    Finish(ToGrpc(status));
  }

  void OnDone() override { delete this; }

 private:
  // The part of a stream that an eviction may use after the stream's end.
  // Whoever removes the gathering must finish the stream, which lives until
  // then.
  class Handle {
   public:
    void Begin(PutStream* stream, std::unique_ptr<Gathering> gathering) {
      absl::MutexLock lock(&mu_);
      stream_ = stream;
      gathering_ = std::move(gathering);
    }
    // Returns null if the stream was evicted. Otherwise prevents an eviction
    // until Leave().
    Gathering* Enter() {
      absl::MutexLock lock(&mu_);
      if (gathering_ != nullptr) ++busy_;
      return gathering_.get();
    }
    void Leave() {
      absl::MutexLock lock(&mu_);
      --busy_;
    }
    // Drops the gathering, and returns the stream, which the caller must
    // finish. Returns null if there is no gathering, or if the stream is busy
    // and the caller is not its owner.
    PutStream* Take(bool is_busy) {
      std::unique_ptr<Gathering> gathering;  // freed without the lock
      absl::MutexLock lock(&mu_);
      if (gathering_ == nullptr || (busy_ > 0 && !is_busy)) return nullptr;
      gathering = std::move(gathering_);
      return stream_;
    }

   private:
    absl::Mutex mu_;
    PutStream* stream_ ABSL_GUARDED_BY(mu_) = nullptr;
    std::unique_ptr<Gathering> gathering_ ABSL_GUARDED_BY(mu_);
    int busy_ ABSL_GUARDED_BY(mu_) = 0;
  };

  // Ends a stalled stream, to free its room.
  static void Evict(const std::weak_ptr<Handle>& weak) {
    const std::shared_ptr<Handle> handle = weak.lock();
    PutStream* const stream =
        handle == nullptr ? nullptr : handle->Take(/*is_busy=*/false);
    if (stream == nullptr) return;
    stream->Finish(ToGrpc(absl::ResourceExhaustedError(
        "put stream: it stalls while it has more than its client's share of "
        "the budget, and others need the room; send faster, or less")));
  }

  grpc::ByteBuffer* const reply_;
  const std::shared_ptr<Handle> handle_;
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
