// The lower bound of the time of a push with a backup: a call that its server
// forwards to another server before it answers, without any other work.
//
//   replicas_chain --listen=HOST:PORT [--next=HOST:PORT]
//   replicas_chain --servers=HOST:PORT,... --bytes=N --seconds=S
//
// The first form serves until its input ends, and prints "ready". The second
// form calls the servers in turn, and prints the median microseconds for each
// server.

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/byte_buffer.h"
#include "penstock/penstock.h"
#include "tensor_service/status.h"

namespace penstock::bench {
namespace {

constexpr char kMethod[] = "/penstock.bench.Chain/Call";
constexpr size_t kAnswerBytes = 16;
constexpr int kTurns = 20;

grpc::ByteBuffer Bytes(size_t size) {
  const grpc::Slice slice(std::string(size, 'x'));
  return {&slice, 1};
}

std::unique_ptr<grpc::GenericStub> StubOf(const std::string& address) {
  return std::make_unique<grpc::GenericStub>(grpc::CreateCustomChannel(
      address, Credentials(grpc::InsecureChannelCredentials(), {}),
      tensor::UnlimitedMessages()));
}

// Answers a call, after the next server has answered if there is one.
class Hop final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Hop(grpc::GenericStub* next) : next_(next) { StartRead(&request_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::CANCELLED);
    if (next_ == nullptr) return Answer(grpc::Status::OK);
    next_->UnaryCall(&context_, kMethod, {}, &request_, &reply_,
                     [this](const grpc::Status& status) { Answer(status); });
  }
  void OnDone() override { delete this; }

 private:
  void Answer(const grpc::Status& status) {
    if (!status.ok()) return Finish(status);
    reply_ = Bytes(kAnswerBytes);
    StartWriteAndFinish(&reply_, {}, status);
  }

  grpc::GenericStub* const next_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_;
  grpc::ByteBuffer reply_;
};

class Service final : public grpc::CallbackGenericService {
 public:
  explicit Service(const std::string& next)
      : next_(next.empty() ? nullptr : StubOf(next)) {}
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* /*context*/) override {
    return new Hop(next_.get());
  }

 private:
  const std::unique_ptr<grpc::GenericStub> next_;
};

int Serve(const std::string& listen, const std::string& next) {
  Service service(next);
  grpc::ServerBuilder builder;
  Enable(&builder, {});
  tensor::AllowUnlimitedMessages(&builder);
  builder.AddListeningPort(listen, grpc::InsecureServerCredentials());
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) {
    std::cerr << "replicas_chain: cannot listen on " << listen << "\n";
    return 1;
  }
  std::cout << "ready" << std::endl;
  for (std::string line; std::getline(std::cin, line);) continue;
  return 0;
}

// Returns the microseconds of a call; negative if it has failed.
int64_t CallOnce(grpc::GenericStub* stub, const grpc::ByteBuffer& request) {
  grpc::ClientContext context;
  grpc::ByteBuffer sent = request;
  grpc::ByteBuffer reply;
  grpc::CompletionQueue queue;
  grpc::Status status;
  const absl::Time start = absl::Now();
  auto call = stub->PrepareUnaryCall(&context, kMethod, sent, &queue);
  call->StartCall();
  call->Finish(&reply, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  const absl::Duration took = absl::Now() - start;
  return status.ok() ? absl::ToInt64Microseconds(took) : -1;
}

int Call(const std::vector<std::string>& servers, size_t bytes,
         double seconds) {
  const grpc::ByteBuffer request = Bytes(bytes);
  std::vector<std::unique_ptr<grpc::GenericStub>> stubs;
  for (const std::string& each : servers) stubs.push_back(StubOf(each));
  std::vector<std::vector<int64_t>> times(stubs.size());
  for (int turn = 0; turn < kTurns; ++turn) {
    for (size_t i = 0; i < stubs.size(); ++i) {
      const absl::Time end = absl::Now() + absl::Seconds(seconds / kTurns);
      while (absl::Now() < end) {
        times[i].push_back(CallOnce(stubs[i].get(), request));
        if (times[i].back() < 0) return 1;
      }
    }
  }
  for (std::vector<int64_t>& each : times) {
    std::sort(each.begin(), each.end());
    std::cout << each[each.size() / 2] << std::endl;
  }
  return 0;
}

int Main(int argc, char** argv) {
  std::string listen;
  std::string next;
  std::string servers;
  size_t bytes = 4096;
  double seconds = 2;
  CLI::App app("Times a call that a server forwards before it answers");
  app.add_option("--listen", listen);
  app.add_option("--next", next);
  app.add_option("--servers", servers);
  app.add_option("--bytes", bytes);
  app.add_option("--seconds", seconds)->check(CLI::PositiveNumber);
  CLI11_PARSE(app, argc, argv);
  if (!listen.empty()) return Serve(listen, next);
  return Call(absl::StrSplit(servers, ','), bytes, seconds);
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) { return penstock::bench::Main(argc, argv); }
