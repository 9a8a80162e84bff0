// Compares calls over Penstock with calls over stock gRPC, in one run.
//
//   ping_pong [--tls] [--tcp] [--only=stock|penstock] [--bytes=N] [ROUNDS]
//
// Starts a stock server and client, and the same with Penstock. Measures them
// alternately, so that other load of the machine affects both alike. Prints the
// median of each cell over all rounds, in microseconds. A cell is one kind of
// client and one size. The server uses the callback API, and returns each
// message. Messages are bytes without Protobuf. A stream is one call, in which
// each message waits for its echo. With --tcp, Penstock's connection stays on
// TCP.

#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/impl/client_unary_call.h"
#include "penstock/penstock.h"
#include "tests/e2e/certificates.h"

namespace penstock {
namespace {

using grpc::ByteBuffer;

enum class Api { kSync, kAsync, kCallback, kStream };
constexpr const char* kApiNames[] = {"sync", "async", "callback", "stream"};
constexpr int kCalls = 200;
constexpr char kUnary[] = "/bench/Unary";
constexpr char kStream[] = "/bench/Stream";

struct Flags {
  bool tls = false;
  bool tcp = false;
  bool stock = true;
  bool penstock = true;
  std::vector<size_t> sizes = {8, 64 * 1024, 1024 * 1024};
  int rounds = 3;
};

struct Order {
  Api api = Api::kSync;
  size_t size = 0;
};

// The settings with which one side connects.
struct How {
  bool with_penstock = false;
  bool tls = false;
  bool tcp = false;
};

Options OptionsFor(const How& how) {
  Options options;
  options.policy = how.with_penstock ? Policy::kRequire : Policy::kOff;
  if (!how.tcp || !how.with_penstock) return options;
  options.policy = Policy::kPrefer;
  options.fabrics = {Fabric::kTcp};
  return options;
}

// Echoes each message. A unary call ends with the first echo.
class Reactor final : public grpc::ServerGenericBidiReactor {
 public:
  explicit Reactor(bool is_unary) : is_unary_(is_unary) {
    StartRead(&message_);
  }
  void OnReadDone(bool ok) override {
    if (!ok) return Finish(grpc::Status::OK);
    if (!is_unary_) return StartWrite(&message_);
    StartWriteAndFinish(&message_, grpc::WriteOptions(), grpc::Status::OK);
  }
  void OnWriteDone(bool ok) override {
    if (ok && !is_unary_) StartRead(&message_);
  }
  void OnDone() override { delete this; }

 private:
  const bool is_unary_;
  ByteBuffer message_;
};

class Echo final : public grpc::CallbackGenericService {
  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    return new Reactor(context->method() == kUnary);
  }
};

[[noreturn]] void Fail(const std::string& what) {
  std::fprintf(stderr, "ping_pong: %s\n", what.c_str());
  std::exit(1);
}

template <typename T>
void Put(int fd, const T& value) {
  if (write(fd, &value, sizeof value) != sizeof value) Fail("write to a pipe");
}
template <typename T>
T Get(int fd) {
  T value;
  if (read(fd, &value, sizeof value) != sizeof value) Fail("a process ended");
  return value;
}

std::shared_ptr<grpc::ServerCredentials> ForServer(bool tls) {
  if (!tls) return grpc::InsecureServerCredentials();
  const auto& made = e2e::TestCertificates();
  if (!made) Fail("no certificates: is openssl installed?");
  grpc::SslServerCredentialsOptions options;
  options.pem_key_cert_pairs.push_back(
      {made->server.key, made->server.certificate});
  return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> ForClient(bool tls) {
  if (!tls) return grpc::InsecureChannelCredentials();
  grpc::SslCredentialsOptions options;
  options.pem_root_certs = e2e::TestCertificates()->authority.certificate;
  return grpc::SslCredentials(options);
}

void Serve(const How& how, int port_pipe) {
  grpc::ServerBuilder builder;
  Enable(&builder, OptionsFor(how));
  builder.SetMaxReceiveMessageSize(-1);
  Echo service;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", ForServer(how.tls), &port);
  builder.RegisterCallbackGenericService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) Fail("no server");
  Put(port_pipe, port);
  server->Wait();
}

class Client {
 public:
  Client(const How& how, int port) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    channel_ = grpc::CreateCustomChannel(
        "ipv4:127.0.0.1:" + std::to_string(port),
        Credentials(ForClient(how.tls), OptionsFor(how)), arguments);
    stub_ = std::make_unique<grpc::GenericStub>(channel_);
  }

  // Returns the microseconds of each call.
  std::vector<double> Calls(const Order& order, int calls) {
    std::vector<double> times;
    std::unique_ptr<Stream> stream;
    if (order.api == Api::kStream) stream = std::make_unique<Stream>(this);
    for (int i = 0; i < calls; ++i) {
      const grpc::Slice slice(std::string(order.size, 'x'));
      const ByteBuffer request(&slice, 1);
      ByteBuffer reply;
      const auto begin = std::chrono::steady_clock::now();
      const grpc::Status status = stream ? stream->Call(request, &reply)
                                         : CallBy(order.api, request, &reply);
      const auto end = std::chrono::steady_clock::now();
      if (!status.ok()) Fail(status.error_message());
      if (reply.Length() != order.size) Fail("a wrong answer");
      times.push_back(
          std::chrono::duration<double, std::micro>(end - begin).count());
    }
    return times;
  }

 private:
  // One call with many messages.
  class Stream {
   public:
    explicit Stream(Client* client) : queue_(&client->queue_) {
      stream_ = client->stub_->PrepareCall(&context_, kStream, queue_);
      stream_->StartCall(this);
      Wait(1);
    }
    ~Stream() {
      grpc::Status status;
      stream_->WritesDone(this);
      stream_->Finish(&status, this);
      Wait(2);
    }
    grpc::Status Call(const ByteBuffer& request, ByteBuffer* reply) {
      stream_->Read(reply, this);
      stream_->Write(request, this);
      Wait(2);
      return grpc::Status::OK;
    }

   private:
    void Wait(int operations) {
      void* tag;
      bool ok;
      for (int i = 0; i < operations; ++i) queue_->Next(&tag, &ok);
    }

    grpc::CompletionQueue* const queue_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
  };

  grpc::Status CallBy(Api api, const ByteBuffer& request, ByteBuffer* reply) {
    if (api == Api::kAsync) return CallAsync(request, reply);
    if (api == Api::kCallback) return CallBack(request, reply);
    grpc::ClientContext context;
    const grpc::internal::RpcMethod method(
        kUnary, grpc::internal::RpcMethod::NORMAL_RPC);
    return grpc::internal::BlockingUnaryCall(channel_.get(), method, &context,
                                             request, reply);
  }

  grpc::Status CallAsync(const ByteBuffer& request, ByteBuffer* reply) {
    grpc::ClientContext context;
    grpc::Status status;
    auto call = stub_->PrepareUnaryCall(&context, kUnary, request, &queue_);
    call->StartCall();
    call->Finish(reply, &status, this);
    void* tag;
    bool ok;
    queue_.Next(&tag, &ok);
    return status;
  }

  grpc::Status CallBack(const ByteBuffer& request, ByteBuffer* reply) {
    grpc::ClientContext context;
    std::mutex mu;
    std::condition_variable changed;
    bool done = false;
    grpc::Status status;
    stub_->UnaryCall(&context, kUnary, grpc::StubOptions(), &request, reply,
                     [&](grpc::Status s) {
                       std::lock_guard<std::mutex> lock(mu);
                       status = std::move(s);
                       done = true;
                       changed.notify_one();
                     });
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return done; });
    return status;
  }

  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<grpc::GenericStub> stub_;
  grpc::CompletionQueue queue_;
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void ServeOrders(const How& how, int port, int orders, int results) {
  Client client(how, port);
  for (;;) {
    const Order order = Get<Order>(orders);
    client.Calls(order, kCalls / 10);
    Put(results, Median(client.Calls(order, kCalls)));
  }
}

// Forks a process that runs `main` and ends when this process ends. Call before
// this process uses gRPC.
template <typename Main>
void Start(const Main& main) {
  const pid_t child = fork();
  if (child < 0) Fail("fork");
  if (child > 0) return;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  main();
  std::exit(0);
}

// A server and a client, in processes of their own.
class Side {
 public:
  explicit Side(const How& how) {
    int port_pipe[2], orders[2], results[2];
    if (pipe(port_pipe) + pipe(orders) + pipe(results) != 0) Fail("pipe");
    Start([&] { Serve(how, port_pipe[1]); });
    const int port = Get<int>(port_pipe[0]);
    Start([&] { ServeOrders(how, port, orders[0], results[1]); });
    orders_ = orders[1];
    results_ = results[0];
  }

  double Measure(const Order& order) {
    Put(orders_, order);
    return Get<double>(results_);
  }

 private:
  int orders_ = -1;
  int results_ = -1;
};

// Prints one line. A side that does not run counts as 0.
void Print(const Order& order, Side* stock, Side* ours, int rounds) {
  std::vector<double> of_stock, of_ours;
  for (int round = 0; round < rounds; ++round) {
    of_stock.push_back(stock == nullptr ? 0 : stock->Measure(order));
    of_ours.push_back(ours == nullptr ? 0 : ours->Measure(order));
  }
  const double theirs = Median(of_stock), mine = Median(of_ours);
  std::printf("%-9s %8zu %10.1f %10.1f %7.2f\n",
              kApiNames[static_cast<int>(order.api)], order.size, theirs, mine,
              mine > 0 ? theirs / mine : 0);
  std::fflush(stdout);
}

int Run(const Flags& flags) {
  // Makes the certificates before the fork, so that all processes have the same
  // certificates.
  if (flags.tls) (void)e2e::TestCertificates();
  std::unique_ptr<Side> stock, ours;
  if (flags.stock) {
    stock = std::make_unique<Side>(How{false, flags.tls, flags.tcp});
  }
  if (flags.penstock) {
    ours = std::make_unique<Side>(How{true, flags.tls, flags.tcp});
  }
  std::printf("%-9s %8s %10s %10s %7s\n", "client", "bytes", "stock",
              "penstock", "factor");
  for (size_t size : flags.sizes) {
    for (Api api : {Api::kSync, Api::kAsync, Api::kCallback, Api::kStream}) {
      Print({api, size}, stock.get(), ours.get(), flags.rounds);
    }
  }
  return 0;
}

// Returns false for an unknown argument.
bool Parse(const std::string& argument, Flags* flags) {
  if (argument == "--tls") {
    flags->tls = true;
  } else if (argument == "--tcp") {
    flags->tcp = true;
  } else if (argument == "--only=stock") {
    flags->penstock = false;
  } else if (argument == "--only=penstock") {
    flags->stock = false;
  } else if (argument.rfind("--bytes=", 0) == 0) {
    flags->sizes = {std::strtoul(argument.c_str() + 8, nullptr, 10)};
  } else {
    flags->rounds = std::atoi(argument.c_str());
  }
  return flags->rounds > 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  penstock::Flags flags;
  for (int i = 1; i < argc; ++i) {
    if (penstock::Parse(argv[i], &flags)) continue;
    std::fprintf(stderr,
                 "usage: ping_pong [--tls] [--tcp] [--only=stock|penstock] "
                 "[--bytes=N] [ROUNDS]\n");
    return 2;
  }
  return penstock::Run(flags);
}
