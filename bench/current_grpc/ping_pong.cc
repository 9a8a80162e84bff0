// Compares calls over Penstock with calls over stock gRPC, in one run.
//
//   ping_pong [ROUNDS]
//
// Starts a stock server and client, and the same with Penstock. Measures them
// alternately, so that both meet the same neighbours. Prints the median of each
// cell over all rounds, in microseconds. A cell is a kind of client and a size;
// the server uses the callback API, and echoes.

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
#include <mutex>
#include <string>
#include <vector>

#include "greeter.grpc.pb.h"
#include "grpcpp/grpcpp.h"
#include "penstock/penstock.h"

namespace penstock {
namespace {

using greeter::Greeter;
using greeter::HelloReply;
using greeter::HelloRequest;

enum class Api { kSync, kAsync, kCallback };
constexpr const char* kApiNames[] = {"sync", "async", "callback"};
constexpr size_t kSizes[] = {8, 64 * 1024, 1024 * 1024};
constexpr int kCalls = 200;

struct Order {
  Api api = Api::kSync;
  size_t size = 0;
};

Options OptionsFor(bool with_penstock) {
  Options options;
  options.policy = with_penstock ? Policy::kRequire : Policy::kOff;
  return options;
}

class Echo final : public Greeter::CallbackService {
  grpc::ServerUnaryReactor* SayHello(grpc::CallbackServerContext* context,
                                     const HelloRequest* request,
                                     HelloReply* reply) override {
    reply->set_message(request->name());
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
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

void Serve(bool with_penstock, int port_pipe) {
  grpc::ServerBuilder builder;
  Enable(&builder, OptionsFor(with_penstock));
  builder.SetMaxReceiveMessageSize(-1);
  Echo service;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (server == nullptr) Fail("no server");
  Put(port_pipe, port);
  server->Wait();
}

class Client {
 public:
  Client(bool with_penstock, int port) {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    stub_ = Greeter::NewStub(grpc::CreateCustomChannel(
        "ipv4:127.0.0.1:" + std::to_string(port),
        Credentials(grpc::InsecureChannelCredentials(),
                    OptionsFor(with_penstock)),
        arguments));
  }

  // Returns the microseconds of one call.
  double Call(const Order& order) {
    HelloRequest request;
    request.set_name(std::string(order.size, 'x'));
    HelloReply reply;
    const auto begin = std::chrono::steady_clock::now();
    const grpc::Status status = CallBy(order.api, request, &reply);
    const auto end = std::chrono::steady_clock::now();
    if (!status.ok()) Fail(status.error_message());
    if (reply.message().size() != order.size) Fail("a wrong answer");
    return std::chrono::duration<double, std::micro>(end - begin).count();
  }

 private:
  grpc::Status CallBy(Api api, const HelloRequest& request, HelloReply* reply) {
    switch (api) {
      case Api::kSync: {
        grpc::ClientContext context;
        return stub_->SayHello(&context, request, reply);
      }
      case Api::kAsync:
        return CallAsync(request, reply);
      case Api::kCallback:
        break;
    }
    return CallBack(request, reply);
  }

  grpc::Status CallAsync(const HelloRequest& request, HelloReply* reply) {
    grpc::ClientContext context;
    grpc::Status status;
    auto call = stub_->AsyncSayHello(&context, request, &queue_);
    call->Finish(reply, &status, this);
    void* tag;
    bool ok;
    queue_.Next(&tag, &ok);
    return status;
  }

  grpc::Status CallBack(const HelloRequest& request, HelloReply* reply) {
    grpc::ClientContext context;
    std::mutex mu;
    std::condition_variable changed;
    bool done = false;
    grpc::Status status;
    stub_->async()->SayHello(&context, &request, reply, [&](grpc::Status s) {
      std::lock_guard<std::mutex> lock(mu);
      status = std::move(s);
      done = true;
      changed.notify_one();
    });
    std::unique_lock<std::mutex> lock(mu);
    changed.wait(lock, [&] { return done; });
    return status;
  }

  std::unique_ptr<Greeter::Stub> stub_;
  grpc::CompletionQueue queue_;
};

void ServeOrders(bool with_penstock, int port, int orders, int results) {
  Client client(with_penstock, port);
  for (;;) {
    const Order order = Get<Order>(orders);
    for (int i = 0; i < kCalls / 10; ++i) client.Call(order);
    std::vector<double> times;
    for (int i = 0; i < kCalls; ++i) times.push_back(client.Call(order));
    std::nth_element(times.begin(), times.begin() + kCalls / 2, times.end());
    Put(results, times[kCalls / 2]);
  }
}

// Starts a process that ends with this one, before gRPC is used here.
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
  explicit Side(bool with_penstock) {
    int port_pipe[2], orders[2], results[2];
    if (pipe(port_pipe) + pipe(orders) + pipe(results) != 0) Fail("pipe");
    Start([&] { Serve(with_penstock, port_pipe[1]); });
    const int port = Get<int>(port_pipe[0]);
    Start([&] { ServeOrders(with_penstock, port, orders[0], results[1]); });
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

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Main(int rounds) {
  Side stock(false), ours(true);
  std::printf("%-9s %8s %10s %10s %7s\n", "client", "bytes", "stock",
              "penstock", "factor");
  for (size_t size : kSizes) {
    for (Api api : {Api::kSync, Api::kAsync, Api::kCallback}) {
      std::vector<double> of_stock, of_ours;
      for (int round = 0; round < rounds; ++round) {
        of_stock.push_back(stock.Measure({api, size}));
        of_ours.push_back(ours.Measure({api, size}));
      }
      const double theirs = Median(of_stock), mine = Median(of_ours);
      std::printf("%-9s %8zu %10.1f %10.1f %7.2f\n",
                  kApiNames[static_cast<int>(api)], size, theirs, mine,
                  theirs / mine);
      std::fflush(stdout);
    }
  }
  return 0;
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 3;
  if (rounds < 1 || argc > 2) {
    std::fprintf(stderr, "usage: ping_pong [ROUNDS]\n");
    return 2;
  }
  return penstock::Main(rounds);
}
