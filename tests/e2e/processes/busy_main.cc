// busy ROLE ...: a process in the test of a server that many clients keep busy.
//
//   busy server API PATH
//       serves with the API sync, async or callback; prints "port N"
//   busy crowd PATH ADDRESS CLIENTS CALLS BYTES
//       keeps CALLS calls outstanding on each of CLIENTS connections, with
//       requests and responses of BYTES (a server with API sync), or empty
//       calls if BYTES is 0; prints "running" after the first answer on each,
//       and "answers N" at the end
//   busy probe PATH ADDRESS MILLIS
//       connects and makes sequential calls for MILLIS, at least ten; prints
//       "answers N" and microseconds: "first N", "median N", "p90 N", "p99 N",
//       "longest N"; or "failed MESSAGE"
//   busy calls PATH ADDRESS COUNT BYTES
//       connects, and prints "connected"; for each line of input, makes COUNT
//       sequential calls with requests and responses of BYTES; prints "done"
//   busy health ADDRESS MILLIS
//       like probe, with health checks of a stock client
//   busy scrape PORT MILLIS
//       like probe, with scrapes of a metrics port
//
// PATH is a name of path.h. A process ends with its input, or with the process
// that started it.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/health_check_service_interface.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "grpcpp/support/async_unary_call.h"
#include "grpcpp/support/channel_arguments.h"
#include "tests/e2e/call.h"
#include "tests/e2e/path.h"
#include "tests/e2e/raw.h"
#include "tests/e2e/test_service.h"

namespace penstock::e2e {
namespace {

using Clock = std::chrono::steady_clock;

void AwaitEndOfInput() {
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
}

// One EmptyCall with the completion-queue API. Deletes itself.
class AsyncCall {
 public:
  AsyncCall(TestService::AsyncService* service,
            grpc::ServerCompletionQueue* queue)
      : service_(service), queue_(queue), writer_(&context_) {
    service_->RequestEmptyCall(&context_, &request_, &writer_, queue_, queue_,
                               this);
  }

  void Proceed(bool ok) {
    if (finishing_ || !ok) {
      delete this;
      return;
    }
    new AsyncCall(service_, queue_);
    finishing_ = true;
    writer_.Finish(Empty(), grpc::Status::OK, this);
  }

 private:
  TestService::AsyncService* const service_;
  grpc::ServerCompletionQueue* const queue_;
  grpc::ServerContext context_;
  Empty request_;
  grpc::ServerAsyncResponseWriter<Empty> writer_;
  bool finishing_ = false;
};

class CallbackService final : public TestService::CallbackService {
  grpc::ServerUnaryReactor* EmptyCall(grpc::CallbackServerContext* context,
                                      const Empty*, Empty*) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

int Serve(const std::string& api, Path path) {
  TestServiceImpl sync;
  CallbackService callback;
  TestService::AsyncService async;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  EnableFor(path, &builder);
  std::unique_ptr<grpc::ServerCompletionQueue> queue;
  if (api == "sync") builder.RegisterService(&sync);
  if (api == "callback") builder.RegisterService(&callback);
  if (api == "async") {
    builder.RegisterService(&async);
    queue = builder.AddCompletionQueue();
  }
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::thread worker;
  if (queue != nullptr) {
    worker = std::thread([&] {
      new AsyncCall(&async, queue.get());
      void* tag = nullptr;
      bool ok = false;
      while (queue->Next(&tag, &ok)) static_cast<AsyncCall*>(tag)->Proceed(ok);
    });
  }
  std::cout << "port " << port << std::endl;
  AwaitEndOfInput();
  _exit(0);  // skips draining a busy server
}

std::shared_ptr<grpc::Channel> Connect(Path path, const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(
      address, CredentialsFor(path, grpc::InsecureChannelCredentials()),
      arguments);
}

// Keeps `calls` calls outstanding on each connection.
class Crowd {
 public:
  Crowd(Path path, const std::string& address, int clients, int calls,
        int bytes) {
    if (bytes > 0) *request_.mutable_payload() = ZeroPayload(bytes);
    request_.set_response_size(bytes);
    for (int client = 0; client < clients; ++client) {
      auto stub = std::make_shared<TestService::Stub>(Connect(path, address));
      for (int call = 0; call < calls; ++call) Start(stub, call == 0);
    }
  }

  // Returns after the first answer on each connection.
  void Begin(int clients) {
    while (begun_ < clients) Turn();
  }
  // Returns once the process's input has ended.
  void Run() {
    std::thread watch([this] {
      AwaitEndOfInput();
      ends_ = true;
    });
    while (!ends_) Turn();
    watch.join();
  }
  int64_t answers() const { return answers_; }

 private:
  struct One {
    std::shared_ptr<TestService::Stub> stub;
    bool is_first;
    std::unique_ptr<Call> call;
    std::unique_ptr<grpc::ClientAsyncResponseReader<Empty>> reader;
    Empty response;
    std::unique_ptr<grpc::ClientAsyncResponseReader<SimpleResponse>> with_bytes;
    SimpleResponse bytes;
    grpc::Status status;
  };

  void Start(std::shared_ptr<TestService::Stub> stub, bool is_first) {
    auto* one = new One;
    one->stub = std::move(stub);
    one->is_first = is_first;
    Send(one);
  }
  void Send(One* one) {
    one->reader = nullptr;
    one->with_bytes = nullptr;
    one->call = std::make_unique<Call>();
    one->call->set_wait_for_ready(true);
    if (request_.has_payload()) {
      one->with_bytes =
          one->stub->AsyncUnaryCall(one->call.get(), request_, &queue_);
      one->with_bytes->Finish(&one->bytes, &one->status, one);
      return;
    }
    one->reader = one->stub->AsyncEmptyCall(one->call.get(), Empty(), &queue_);
    one->reader->Finish(&one->response, &one->status, one);
  }
  void Turn() {
    void* tag = nullptr;
    bool ok = false;
    if (!queue_.Next(&tag, &ok)) return;
    auto* one = static_cast<One*>(tag);
    if (!one->status.ok()) {
      std::cout << "failed " << one->status.error_message() << std::endl;
      _exit(1);
    }
    ++answers_;
    if (one->is_first) ++begun_;
    one->is_first = false;
    Send(one);
  }

  SimpleRequest request_;  // with a payload unless the calls are empty
  grpc::CompletionQueue queue_;
  int begun_ = 0;
  int64_t answers_ = 0;
  std::atomic<bool> ends_{false};
};

int RunCrowd(Path path, const std::string& address, int clients, int calls,
             int bytes) {
  Crowd crowd(path, address, clients, calls, bytes);
  crowd.Begin(clients);
  std::cout << "running" << std::endl;
  const auto start = Clock::now();
  crowd.Run();
  const std::chrono::duration<double> time = Clock::now() - start;
  std::cout << "answers " << crowd.answers() << std::endl;
  std::cout << "rate " << static_cast<int64_t>(crowd.answers() / time.count())
            << std::endl;
  _exit(0);  // calls are in progress
}

// Calls `ask` repeatedly, and prints the durations. `ask` returns an error
// text, or an empty text.
int Measure(std::chrono::milliseconds time,
            const std::function<std::string()>& ask) {
  // The minimal number of calls, even if a busy machine makes them slow.
  constexpr size_t kLeastCalls = 10;
  std::vector<int64_t> micros;
  const auto end = Clock::now() + time;
  while (Clock::now() < end || micros.size() < kLeastCalls) {
    const auto start = Clock::now();
    const std::string failed = ask();
    if (!failed.empty()) {
      std::cout << "failed " << failed << std::endl;
      return 1;
    }
    micros.push_back(std::chrono::duration_cast<std::chrono::microseconds>(
                         Clock::now() - start)
                         .count());
  }
  std::cout << "first " << micros[0];
  std::sort(micros.begin(), micros.end());
  std::cout << "\nanswers " << micros.size() << "\nmedian "
            << micros[micros.size() / 2] << "\np90 "
            << micros[micros.size() * 9 / 10] << "\np99 "
            << micros[micros.size() * 99 / 100] << "\nlongest " << micros.back()
            << std::endl;
  return 0;
}

int Probe(Path path, const std::string& address,
          std::chrono::milliseconds time) {
  TestService::Stub stub(Connect(path, address));
  return Measure(time, [&] {
    const grpc::Status status = MakeEmptyCall(&stub);
    return status.ok() ? "" : status.error_message();
  });
}

int MakeCalls(Path path, const std::string& address, int count, int bytes) {
  TestService::Stub stub(Connect(path, address));
  SimpleRequest request;
  *request.mutable_payload() = ZeroPayload(bytes);
  request.set_response_size(bytes);
  const auto call_once = [&] {
    Call call;
    SimpleResponse response;
    return stub.UnaryCall(&call, request, &response).ok();
  };
  if (!call_once()) return 1;
  std::cout << "connected" << std::endl;
  while (std::cin.get() != std::char_traits<char>::eof()) {
    for (int i = 0; i < count; ++i) {
      if (!call_once()) return 1;
    }
    std::cout << "done" << std::endl;
  }
  return 0;
}

int CheckHealth(const std::string& address, std::chrono::milliseconds time) {
  const auto channel = Connect(Path::kStock, address);
  return Measure(time, [&]() -> std::string {
    Call call;
    RawStream stream(channel, &call, "/grpc.health.v1.Health/Check");
    // Writes an empty request, which asks for the whole server's health.
    if (!stream.Write("") || !stream.WritesDone()) return "not sent";
    const std::string serving("\x08\x01");  // a response with status SERVING
    const auto answer = stream.Read();
    const grpc::Status status = stream.Finish();
    if (!status.ok()) return status.error_message();
    return answer == serving ? "" : "not serving";
  });
}

// Sends a GET to an HTTP server on this host. Returns the whole answer.
std::string Get(uint16_t port, const std::string& path) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in to = {};
  to.sin_family = AF_INET;
  to.sin_port = htons(port);
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string request =
      absl::StrCat("GET ", path, " HTTP/1.1\r\nHost: localhost\r\n",
                   "Connection: close\r\n\r\n");
  std::string answer;
  if (connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0 &&
      send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0) {
    char bytes[4096];
    for (ssize_t size; (size = recv(fd, bytes, sizeof bytes, 0)) > 0;) {
      answer.append(bytes, size);
    }
  }
  close(fd);
  return answer;
}

int Scrape(uint16_t port, std::chrono::milliseconds time) {
  return Measure(time, [port] {
    const std::string answer = Get(port, "/metrics");
    return absl::StrContains(answer, "penstock_sessions ") ? "" : "no page";
  });
}

}  // namespace
}  // namespace penstock::e2e

int main(int argc, char** argv) {
  using namespace penstock::e2e;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_IGN);
  const std::string role = argc > 1 ? argv[1] : "";
  if (role == "server" && argc == 4) {
    return Serve(argv[2], *PathOfName(argv[3]));
  }
  if (role == "crowd" && argc == 7) {
    return RunCrowd(*PathOfName(argv[2]), argv[3], std::atoi(argv[4]),
                    std::atoi(argv[5]), std::atoi(argv[6]));
  }
  if (role == "probe" && argc == 5) {
    return Probe(*PathOfName(argv[2]), argv[3],
                 std::chrono::milliseconds(std::atoi(argv[4])));
  }
  if (role == "calls" && argc == 6) {
    return MakeCalls(*PathOfName(argv[2]), argv[3], std::atoi(argv[4]),
                     std::atoi(argv[5]));
  }
  if (role == "health" && argc == 4) {
    return CheckHealth(argv[2], std::chrono::milliseconds(std::atoi(argv[3])));
  }
  if (role == "scrape" && argc == 4) {
    return Scrape(static_cast<uint16_t>(std::atoi(argv[2])),
                  std::chrono::milliseconds(std::atoi(argv[3])));
  }
  return 2;
}
