// Measures short connections: callers that repeatedly open a channel, make one
// call of 8 bytes and close the channel.
//
// Server and client are separate processes. Both are forked for each round and
// transport, before this process uses gRPC. The transports alternate.

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "bench/echo/service.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"

namespace penstock::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kStock[] = "stock";

struct Options {
  std::vector<std::string> transports = {kStock, "tcp", "shm"};
  int rounds = 5;
  int callers = 4;
  double seconds = 2;
};

// The results of one round of a transport. A child process sends them over a
// pipe as raw bytes.
struct Measured {
  double connections_per_second = 0;
  double median_us = 0;      // of one connection, from opening to closing
  double client_cpu_us = 0;  // per connection
  double server_cpu_us = 0;
};

double CpuSeconds(int who) {
  rusage usage;
  getrusage(who, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) +
           static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

[[noreturn]] void Fail(const std::string& why) {
  std::fprintf(stderr, "connections: %s\n", why.c_str());
  _exit(1);
}

// Forks a child process that runs `body` and ends. Returns the child's id.
pid_t InChild(const std::string& transport, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child < 0) Fail("fork failed");
  if (child > 0) return child;
  setenv("PENSTOCK_LOG", "error", 1);
  if (transport != kStock) setenv("PENSTOCK_FABRICS", transport.c_str(), 1);
  body();
  _exit(0);
}

void Await(pid_t child) {
  int status = -1;
  waitpid(child, &status, 0);
  if (status != 0) Fail("a child failed");
}

template <typename T>
void Send(int fd, const T& value) {
  if (write(fd, &value, sizeof value) != sizeof value) Fail("a pipe broke");
}

template <typename T>
T Receive(int fd) {
  T value;
  if (read(fd, &value, sizeof value) != sizeof value) Fail("a child died");
  return value;
}

// Runs a server until a byte arrives at the descriptor `until`. Writes the port
// to `report`, and at the end the CPU time.
void Serve(bool stock, int report, int until) {
  EchoService service;
  grpc::ServerBuilder builder;
  if (!stock) Enable(&builder);
  builder.RegisterCallbackGenericService(&service);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) Fail("cannot listen");
  Send(report, port);
  (void)Receive<char>(until);
  Send(report, CpuSeconds(RUSAGE_SELF));
}

void OpenCallAndClose(bool stock, const std::string& address) {
  auto credentials = grpc::InsecureChannelCredentials();
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  grpc::GenericStub stub(grpc::CreateCustomChannel(
      address, stock ? credentials : Credentials(credentials), arguments));
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice slice(std::string(8, 'x'));
  const grpc::ByteBuffer message(&slice, 1);
  grpc::ByteBuffer answer;
  grpc::Status status;
  auto call = stub.PrepareUnaryCall(&context, "/bench/Echo", message, &queue);
  call->StartCall();
  call->Finish(&answer, &status, nullptr);
  void* tag;
  bool ok;
  if (!queue.Next(&tag, &ok) || !status.ok()) Fail(status.error_message());
}

Measured MeasureClient(bool stock, const std::string& address,
                       const Options& options) {
  // An unused queue, which keeps gRPC from shutting down between calls.
  const grpc::CompletionQueue alive;
  OpenCallAndClose(stock, address);  // performs the process's one-time work
  const double cpu = CpuSeconds(RUSAGE_SELF);
  const auto begin = Clock::now();
  const auto end = begin + std::chrono::duration<double>(options.seconds);
  std::vector<std::vector<double>> times(options.callers);
  std::vector<std::thread> callers;
  for (auto& own : times) {
    callers.emplace_back([&own, &address, stock, end] {
      for (auto from = Clock::now(); from < end;) {
        OpenCallAndClose(stock, address);
        const auto now = Clock::now();
        own.push_back(
            std::chrono::duration<double, std::micro>(now - from).count());
        from = now;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  const std::chrono::duration<double> took = Clock::now() - begin;
  std::vector<double> all;
  for (const auto& own : times) all.insert(all.end(), own.begin(), own.end());
  const auto count = static_cast<double>(all.size());
  std::nth_element(all.begin(), all.begin() + all.size() / 2, all.end());
  Measured measured;
  measured.connections_per_second = count / took.count();
  measured.median_us = all[all.size() / 2];
  measured.client_cpu_us = (CpuSeconds(RUSAGE_SELF) - cpu) * 1e6 / count;
  return measured;
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (pipe(ends) != 0) Fail("no pipe");
    out = ends[0];
    in = ends[1];
  }
  ~Pipe() {
    close(out);
    close(in);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  int out;
  int in;
};

Measured Measure(const std::string& transport, const Options& options) {
  const bool stock = transport == kStock;
  Pipe from_server, to_server, from_client;
  const pid_t server =
      InChild(transport, [&] { Serve(stock, from_server.in, to_server.out); });
  const std::string address =
      absl::StrCat("127.0.0.1:", Receive<int>(from_server.out));
  const pid_t client = InChild(transport, [&] {
    Send(from_client.in, MeasureClient(stock, address, options));
  });
  auto measured = Receive<Measured>(from_client.out);
  Await(client);
  Send(to_server.in, 'e');
  const auto server_cpu = Receive<double>(from_server.out);
  Await(server);
  measured.server_cpu_us =
      server_cpu * 1e6 / (measured.connections_per_second * options.seconds);
  return measured;
}

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

int Compare(const Options& options) {
  std::map<std::string, std::vector<Measured>> all;
  for (int round = 0; round < options.rounds; ++round) {
    for (const std::string& transport : options.transports) {
      all[transport].push_back(Measure(transport, options));
    }
  }
  std::printf(
      "Channels that are opened for one call of 8 bytes each, %d callers, "
      "medians of %d rounds of %g s:\n"
      "%10s%14s%14s%18s%18s\n",
      options.callers, options.rounds, options.seconds, "", "channels/s",
      "p50, us", "client CPU, us", "server CPU, us");
  for (const std::string& transport : options.transports) {
    const auto median = [&](double Measured::*what) {
      std::vector<double> values;
      for (const Measured& one : all[transport]) values.push_back(one.*what);
      return Median(std::move(values));
    };
    std::printf("%10s%14.0f%14.0f%18.0f%18.0f\n", transport.c_str(),
                median(&Measured::connections_per_second),
                median(&Measured::median_us), median(&Measured::client_cpu_us),
                median(&Measured::server_cpu_us));
  }
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  CLI::App app("Measures channels that are opened for one call each.");
  penstock::bench::Options options;
  app.add_option("--transports", options.transports)
      ->delimiter(',')
      ->check(CLI::IsMember({"stock", "tcp", "shm"}))
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--callers", options.callers)
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "of each round and transport")
      ->check(CLI::Range(0.1, 3600.0))
      ->capture_default_str();
  CLI11_PARSE(app, argc, argv);
  return penstock::bench::Compare(options);
}
