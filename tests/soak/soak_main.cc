// soak [--calls=N]: runs a server and a client process, and N calls of all
// kinds between them, half over shm and half over tcp. Fails if a call fails,
// or if either process holds more after the last call than after a tenth of the
// calls. Prints a line per tenth.
//
// soak --serve: runs the server. Prints "port N", and exits at the end of
// standard input.

#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "tests/e2e/adapter.h"
#include "tests/e2e/child.h"
#include "tests/soak/caller.h"
#include "tests/soak/holdings.h"
#include "tests/soak/plan.h"
#include "tests/soak/service.h"

namespace penstock::soak {
namespace {

constexpr int kDefaultCalls = 20000;
constexpr int kParts = 10;
// Two threads for each path, so that calls share a connection.
constexpr int kThreads = 4;
// The time in which a process frees a call's last resources.
constexpr std::chrono::seconds kSettling(10);

int Serve() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  SoakService service;
  grpc::ServerBuilder builder;
  Options options;
  options.fabrics = {Fabric::kShm, Fabric::kTcp};
  Enable(&builder, options);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  if (server == nullptr) return 1;
  std::cout << "port " << port << std::endl;
  char byte;
  while (read(STDIN_FILENO, &byte, 1) > 0) {
  }
  server->Shutdown(std::chrono::system_clock::now());
  return 0;
}

std::shared_ptr<grpc::Channel> Connect(const std::string& port, Fabric fabric) {
  Options options;
  // Current gRPC has no path over TCP that could be required.
  options.policy = e2e::kIsEventEngine && fabric == Fabric::kTcp
                       ? Policy::kPrefer
                       : Policy::kRequire;
  options.fabrics = {fabric};
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  return grpc::CreateCustomChannel(
      absl::StrCat("127.0.0.1:", port),
      Credentials(grpc::InsecureChannelCredentials(), options), arguments);
}

// The resources of both processes.
struct Sample {
  Holdings client;
  Holdings server;
};

bool IsFlat(const Sample& before, const Sample& now) {
  return IsFlat(before.client, now.client) && IsFlat(before.server, now.server);
}

class Client {
 public:
  explicit Client(const std::string& port)
      : channels_{Connect(port, Fabric::kShm), Connect(port, Fabric::kTcp)} {}

  // Returns true on success.
  bool Run(int calls) {
    Sample first;
    for (int part = 1; part <= kParts; ++part) {
      const auto begin = std::chrono::steady_clock::now();
      MakeCalls(calls / kParts, part);
      const std::chrono::duration<double> time =
          std::chrono::steady_clock::now() - begin;
      Sample now = Measure();
      if (part == 1) first = now;
      if (part == kParts) now = Settle(first);
      Print(part, calls / kParts / time.count(), now);
      if (part == kParts && !IsFlat(first, now)) Fail("more is held than was");
    }
    CheckPaths();
    return failures_ == 0;
  }

 private:
  void MakeCalls(int calls, int part) {
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([this, calls, part, i] {
        Caller caller(channels_[i % 2]);
        std::mt19937_64 random(part * kThreads + i);
        for (int call = i; call < calls; call += kThreads) {
          const std::string wrong = caller.Make(AnyPlan(&random));
          if (!wrong.empty()) Fail(wrong);
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  Sample Measure() {
    Sample sample;
    grpc::ClientContext context;
    const grpc::Status status =
        Soak::NewStub(channels_[0])->Hold(&context, Nothing(), &sample.server);
    if (!status.ok()) Fail(status.error_message());
    sample.client = MeasureSelf();
    return sample;
  }

  Sample Settle(const Sample& first) {
    const auto end = std::chrono::steady_clock::now() + kSettling;
    Sample now = Measure();
    while (!IsFlat(first, now) && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
      now = Measure();
    }
    return now;
  }

  // Returns the paths of one channel's connections. With current gRPC, the
  // reports are those of both channels.
  static std::vector<std::string> Expected(int channel) {
    if (e2e::kIsEventEngine) return {"http2", "shm"};
    return {channel == 0 ? "shm" : "tcp"};
  }

  void CheckPaths() {
    for (int i : {0, 1}) {
      const std::vector<PathReport> reports = DescribePaths(*channels_[i]);
      std::vector<std::string> paths;
      for (const PathReport& report : reports) paths.push_back(report.path);
      std::sort(paths.begin(), paths.end());
      if (paths != Expected(i)) Fail("another path than was wanted");
      for (const PathReport& report : reports) {
        std::cout << report << ": " << report.messages_sent
                  << " messages sent, " << report.messages_received
                  << " received, " << (report.bytes_sent >> 20) << " MiB sent, "
                  << (report.bytes_received >> 20) << " MiB received\n";
      }
    }
  }

  static void Print(int part, double rate, const Sample& now) {
    std::cout << part * 100 / kParts << " %, " << static_cast<int>(rate)
              << " calls/s; client: " << ToText(now.client)
              << "; server: " << ToText(now.server) << std::endl;
  }

  void Fail(const std::string& what) {
    constexpr int kMostLines = 20;
    if (++failures_ > kMostLines) return;
    std::lock_guard<std::mutex> lock(output_);
    std::cout << "FAILED: " << what << std::endl;
  }

  const std::shared_ptr<grpc::Channel> channels_[2];
  std::atomic<int> failures_{0};
  std::mutex output_;
};

int Main(const std::string& program, int calls) {
  const auto server = e2e::Child::Start({program, "--serve"});
  if (server == nullptr) return 1;
  const absl::optional<std::string> port = server->Find("port ");
  if (!port.has_value()) return 1;
  const bool ok = Client(*port).Run(calls);
  const int code = server->Finish();
  if (code != 0)
    std::cout << "FAILED: the server's exit code is " << code << "\n";
  std::cout << (ok && code == 0 ? "passed" : "failed") << std::endl;
  return ok && code == 0 ? 0 : 1;
}

}  // namespace
}  // namespace penstock::soak

int main(int argc, char** argv) {
  using namespace penstock::soak;
  absl::string_view flag = argc > 1 ? argv[1] : "";
  int calls = kDefaultCalls;
  int code = 2;
  KeepNoFreeMemory();
  if (flag == "--serve") {
    code = Serve();
  } else if (flag.empty() || (absl::ConsumePrefix(&flag, "--calls=") &&
                              absl::SimpleAtoi(flag, &calls))) {
    code = Main(argv[0], calls);
  } else {
    std::cerr << "usage: soak [--calls=N | --serve]" << std::endl;
  }
  // Skips gRPC's shutdown, which may wait ten seconds after a large write.
  _exit(code);
}
