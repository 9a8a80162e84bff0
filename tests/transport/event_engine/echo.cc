#include "tests/transport/event_engine/echo.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace event_engine {
namespace {

std::string TextOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  (void)buffer.Dump(&slices);
  std::string text;
  for (const grpc::Slice& slice : slices) {
    text.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  }
  return text;
}

}  // namespace

class EchoServer::Reactor : public grpc::ServerGenericBidiReactor {
 public:
  Reactor() { StartRead(&message_); }

  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    StartWrite(&message_);
  }
  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, ""));
    StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  grpc::ByteBuffer message_;
};

EchoServer::EchoServer(const Options& options,
                       std::shared_ptr<grpc::ServerCredentials> credentials,
                       int port, const std::string& ip, Windows windows) {
  grpc::ServerBuilder builder;
  if (windows == Windows::kFixed) {
    builder.AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  Enable(&builder, options);
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort(absl::StrCat(ip, ":", port), std::move(credentials),
                           &port_);
  builder.RegisterCallbackGenericService(this);
  server_ = builder.BuildAndStart();
}

EchoServer::~EchoServer() {
  if (server_ == nullptr) return;
  server_->Shutdown(std::chrono::system_clock::now());
  server_->Wait();
}

std::string EchoServer::target() const {
  return absl::StrCat("ipv4:127.0.0.1:", port_);
}

grpc::ServerGenericBidiReactor* EchoServer::CreateReactor(
    grpc::GenericCallbackServerContext* context) {
  if (context->method() == "/test/Wait") {
    blocked_.Notify();
    released_.WaitForNotification();
  }
  return new Reactor;
}

std::shared_ptr<grpc::Channel> NewChannel(
    const std::string& target, const Options& options,
    const std::shared_ptr<grpc::ChannelCredentials>& credentials,
    Windows windows) {
  grpc::ChannelArguments arguments;
  if (windows == Windows::kFixed) {
    arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  }
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetMaxReceiveMessageSize(-1);
  return grpc::CreateCustomChannel(target, Credentials(credentials, options),
                                   arguments);
}

EchoCall::EchoCall(const std::shared_ptr<grpc::Channel>& channel,
                   const std::string& method)
    : stub_(channel) {
  stream_ = stub_.PrepareCall(&context_, method, &queue_);
  stream_->StartCall(this);
  WaitFor(this);
}

EchoCall::~EchoCall() {
  if (!finished_) {
    context_.TryCancel();
    (void)Finish();
  }
  queue_.Shutdown();
  void* tag;
  bool ok;
  while (queue_.Next(&tag, &ok)) continue;
}

bool EchoCall::WaitFor(void* tag) {
  void* got = nullptr;
  bool ok = false;
  while (queue_.Next(&got, &ok) && got != tag) continue;
  return ok;
}

bool EchoCall::Send(const grpc::Slice& message) {
  stream_->Write(grpc::ByteBuffer(&message, 1), this);
  return WaitFor(this);
}

bool EchoCall::Receive(std::string* message) {
  grpc::ByteBuffer buffer;
  stream_->Read(&buffer, this);
  if (!WaitFor(this)) return false;
  *message = TextOf(buffer);
  return true;
}

grpc::Status EchoCall::Finish() {
  finished_ = true;
  stream_->WritesDone(this);
  WaitFor(this);
  grpc::Status status;
  stream_->Finish(&status, this);
  WaitFor(this);
  return status;
}

grpc::Status Echo(const std::shared_ptr<grpc::Channel>& channel,
                  const std::string& message, const std::string& method) {
  EchoCall call(channel, method);
  std::string echo;
  if (!call.Send(message) || !call.Receive(&echo)) return call.Finish();
  if (echo != message) {
    return grpc::Status(grpc::StatusCode::DATA_LOSS, "another message");
  }
  return call.Finish();
}

std::string PathTo(const std::shared_ptr<grpc::Channel>& channel,
                   const std::string& target) {
  std::string path = "none";
  for (const PathReport& report : DescribePaths(*channel)) {
    if (report.peer == target) path = report.path;
  }
  return path;
}

bool ReachesShm(const std::shared_ptr<grpc::Channel>& channel,
                const std::string& target) {
  for (int i = 0; i < 1000; ++i) {
    if (!Echo(channel, "hello").ok()) return false;
    if (PathTo(channel, target) == "shm") return true;
  }
  return false;
}

}  // namespace event_engine
}  // namespace penstock
