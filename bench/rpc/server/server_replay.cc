// The server of --benchmark=replay, with gRPC's blocking API.

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/rpc/recording/recording.h"
#include "bench/rpc/recording/replay_message.h"
#include "bench/rpc/server/server.h"
#include "bench/rpc/setup/service.h"
#include "grpcpp/impl/rpc_service_method.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/method_handler.h"
#include "grpcpp/support/sync_stream.h"

namespace penstock {
namespace bench {
namespace {

using grpc::ByteBuffer;

class ReplayService final : public grpc::Service {
 public:
  explicit ReplayService(std::shared_ptr<const Recording> recording)
      : recording_(std::move(recording)) {
    using grpc::internal::RpcMethod;
    AddMethod(new grpc::internal::RpcServiceMethod(
        kReplayMethod, RpcMethod::NORMAL_RPC,
        new grpc::internal::RpcMethodHandler<ReplayService, ByteBuffer,
                                             ByteBuffer>(Unary, this)));
    AddMethod(new grpc::internal::RpcServiceMethod(
        kReplayStreamMethod, RpcMethod::BIDI_STREAMING,
        new grpc::internal::BidiStreamingHandler<ReplayService, ByteBuffer,
                                                 ByteBuffer>(RunStream, this)));
  }

 private:
  using Stream = grpc::ServerReaderWriter<ByteBuffer, ByteBuffer>;

  absl::StatusOr<size_t> CallOf(const grpc::ServerContext& context) const {
    const auto found = context.client_metadata().find(kReplayedCall);
    uint64_t number = 0;
    if (found == context.client_metadata().end() ||
        !absl::SimpleAtoi(
            absl::string_view(found->second.data(), found->second.size()),
            &number) ||
        number >= recording_->calls.size()) {
      return absl::InvalidArgumentError(
          "the recording has no such call: client and server read different "
          "files");
    }
    return static_cast<size_t>(number);
  }

  static grpc::Status Unary(ReplayService* self, grpc::ServerContext* context,
                            const ByteBuffer* request, ByteBuffer* reply) {
    const absl::StatusOr<size_t> number = self->CallOf(*context);
    if (!number.ok()) return ToGrpc(number.status());
    const RecordedCall& call = self->recording_->calls[*number];
    if (!call.is_unary()) return ToGrpc(absl::InternalError("a stream"));
    const absl::Status status = CheckReplayMessage(
        *request, call.messages[0].bytes, ReplaySeed(*number, 0));
    if (!status.ok()) return ToGrpc(status);
    *reply = MakeReplayMessage(call.messages[1].bytes, ReplaySeed(*number, 1));
    return grpc::Status::OK;
  }

  static grpc::Status RunStream(ReplayService* self,
                                grpc::ServerContext* context, Stream* stream) {
    const absl::StatusOr<size_t> number = self->CallOf(*context);
    if (!number.ok()) return ToGrpc(number.status());
    const RecordedCall& call = self->recording_->calls[*number];
    for (size_t i = 0; i < call.messages.size(); ++i) {
      const RecordedMessage& recorded = call.messages[i];
      const uint64_t seed = ReplaySeed(*number, i);
      ByteBuffer message;
      if (recorded.sent) {
        if (!stream->Write(MakeReplayMessage(recorded.bytes, seed))) break;
        continue;
      }
      if (!stream->Read(&message)) break;
      const absl::Status status =
          CheckReplayMessage(message, recorded.bytes, seed);
      if (!status.ok()) return ToGrpc(status);
    }
    return grpc::Status(static_cast<grpc::StatusCode>(call.status),
                        call.status == 0 ? "" : "as recorded");
  }

  const std::shared_ptr<const Recording> recording_;
};

class ReplayHost final : public ServiceHost {
 public:
  explicit ReplayHost(std::shared_ptr<const Recording> recording)
      : echo_(MakeSyncHost()), service_(std::move(recording)) {}
  void Register(grpc::ServerBuilder* builder) override {
    echo_->Register(builder);
    builder->RegisterService(&service_);
  }

 private:
  // Serves Echo, by which clients check that the server is ready.
  const std::unique_ptr<ServiceHost> echo_;
  ReplayService service_;
};

}  // namespace

std::unique_ptr<ServiceHost> MakeReplayHost(
    std::shared_ptr<const Recording> recording) {
  return std::make_unique<ReplayHost>(std::move(recording));
}

}  // namespace bench
}  // namespace penstock
