// gRPC's blocking client API.

#include <memory>
#include <thread>
#include <vector>

#include "bench/rpc/client/client.h"
#include "bench/rpc/setup/service.h"
#include "grpcpp/impl/client_unary_call.h"
#include "grpcpp/impl/rpc_method.h"
#include "grpcpp/support/sync_stream.h"

namespace penstock {
namespace bench {
namespace {

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;

void EchoLane(const std::shared_ptr<grpc::Channel>& channel, Lane* lane) {
  const RpcMethod method(kEchoMethod, RpcMethod::NORMAL_RPC, channel);
  ByteBuffer request;
  while (lane->Start(&request)) {
    grpc::ClientContext context;
    SetDeadline(&context);
    ByteBuffer reply;
    const grpc::Status status = grpc::internal::BlockingUnaryCall(
        channel.get(), method, &context, request, &reply);
    lane->Finish(status, reply);
  }
}

void StreamLane(const std::shared_ptr<grpc::Channel>& channel, Lane* lane) {
  const RpcMethod method(kStreamMethod, RpcMethod::CLIENT_STREAMING, channel);
  grpc::ClientContext context;
  ByteBuffer reply;
  const std::unique_ptr<grpc::ClientWriter<ByteBuffer>> writer(
      grpc::internal::ClientWriterFactory<ByteBuffer>::Create(
          channel.get(), method, &context, &reply));
  ByteBuffer message;
  while (lane->Start(&message) && writer->Write(message)) lane->Written();
  writer->WritesDone();
  const grpc::Status status = writer->Finish();
  lane->Close(status, reply);
}

void RunLanes(void (*run)(const std::shared_ptr<grpc::Channel>&, Lane*),
              const std::shared_ptr<grpc::Channel>& channel, Load* load) {
  std::vector<std::thread> threads;
  for (int i = 0; i < load->threads(); ++i) {
    for (Lane* lane : load->LanesOf(i)) {
      threads.emplace_back([run, &channel, lane] { run(channel, lane); });
    }
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

absl::Status CallEcho(const std::shared_ptr<grpc::Channel>& channel,
                      const ByteBuffer& request, ByteBuffer* reply) {
  grpc::ClientContext context;
  SetDeadline(&context);
  return FromGrpc(grpc::internal::BlockingUnaryCall(
      channel.get(), RpcMethod(kEchoMethod, RpcMethod::NORMAL_RPC, channel),
      &context, request, reply));
}

void RunEchoSync(const std::shared_ptr<grpc::Channel>& channel, Load* load) {
  RunLanes(EchoLane, channel, load);
}

void RunStreamSync(const std::shared_ptr<grpc::Channel>& channel, Load* load) {
  RunLanes(StreamLane, channel, load);
}

}  // namespace bench
}  // namespace penstock
