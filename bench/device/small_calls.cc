// Measures how much more calls of 8 bytes cost in a process with devices, where
// each message passes a filter. Needs no GPU, because the devices are never
// used.
//
// Runs this program as a child for each round, with devices and without in
// turn, because a process cannot change its devices.

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "bench/echo/service.h"
#include "grpcpp/client_context.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/server_builder.h"
#include "penstock/penstock.h"
#include "transport/memory/device_ranges.h"

namespace penstock::bench {
namespace {

// A substitute for a device's driver, whose functions all fail.
class NoMemory final : public memory::DeviceAccess {
 public:
  absl::Status CopyToHost(absl::Span<const uint8_t>, uint8_t*) override {
    return error_;
  }
  absl::Status CopyFromHost(absl::Span<const uint8_t>, uint8_t*) override {
    return error_;
  }
  absl::StatusOr<memory::SharedAllocation> Share(
      absl::Span<const uint8_t>) override {
    return error_;
  }
  absl::StatusOr<memory::OpenAllocation> Open(absl::string_view,
                                              uint64_t) override {
    return error_;
  }
  absl::StatusOr<memory::Dmabuf> ExportDmabuf(
      absl::Span<const uint8_t>) override {
    return error_;
  }

 private:
  const absl::Status error_ = absl::InternalError("no memory of this device");
};

void Call(grpc::GenericStub* stub, const grpc::ByteBuffer& message) {
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  grpc::ByteBuffer answer;
  grpc::Status status;
  auto call = stub->PrepareUnaryCall(&context, "/bench/Echo", message, &queue);
  call->StartCall();
  call->Finish(&answer, &status, nullptr);
  void* tag;
  bool ok;
  if (!queue.Next(&tag, &ok) || !status.ok()) {
    std::fprintf(stderr, "a call failed: %s\n", status.error_message().c_str());
    std::exit(1);
  }
}

// Returns the median latency of `calls` calls, in microseconds.
double Measure(bool devices, int calls) {
  if (devices) {
    const absl::Status named = memory::SetDevicesOfProcess(new NoMemory);
    if (!named.ok()) {
      std::fprintf(stderr, "%s\n", named.ToString().c_str());
      std::exit(1);
    }
  }
  EchoService service;
  grpc::ServerBuilder builder;
  Enable(&builder);
  builder.RegisterCallbackGenericService(&service);
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(),
                           &port);
  const auto server = builder.BuildAndStart();
  grpc::GenericStub stub(
      grpc::CreateChannel(absl::StrCat("127.0.0.1:", port),
                          Credentials(grpc::InsecureChannelCredentials())));
  const grpc::Slice slice(std::string(8, 'x'));
  const grpc::ByteBuffer message(&slice, 1);
  std::vector<double> times;
  for (int i = 0; i < calls + calls / 10; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    Call(&stub, message);
    const std::chrono::duration<double, std::micro> time =
        std::chrono::steady_clock::now() - begin;
    if (i >= calls / 10) times.push_back(time.count());
  }
  server->Shutdown();
  std::nth_element(times.begin(), times.begin() + calls / 2, times.end());
  return times[calls / 2];
}

// Measures in a child process. Returns the number that the child prints, or -1
// if the child failed.
double MeasureInChild(bool devices, int calls) {
  char self[4096] = {};
  if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0) return -1;
  const std::string command =
      absl::StrCat("PENSTOCK_LOG=error '", self, "' --calls=", calls,
                   devices ? " --only=devices" : " --only=none");
  FILE* const output = popen(command.c_str(), "r");
  char line[64] = {};
  double median = -1;
  if (output == nullptr) return -1;
  if (fgets(line, sizeof(line), output) == nullptr ||
      !absl::SimpleAtod(line, &median)) {
    median = -1;
  }
  return pclose(output) == 0 ? median : -1;
}

int Compare(int rounds, int calls) {
  std::printf(
      "Medians of %d calls of 8 bytes over one channel, microseconds:\n"
      "%12s%12s%8s\n",
      calls, "no devices", "devices", "ratio");
  std::vector<double> ratios;
  for (int i = 0; i < rounds; ++i) {
    const double without = MeasureInChild(false, calls);
    const double with = MeasureInChild(true, calls);
    if (without <= 0 || with <= 0) return 1;
    ratios.push_back(with / without);
    std::printf("%12.1f%12.1f%8.3f\n", without, with, ratios.back());
  }
  std::sort(ratios.begin(), ratios.end());
  std::printf("median ratio %.3f (%.3f to %.3f)\n", ratios[rounds / 2],
              ratios.front(), ratios.back());
  return 0;
}

}  // namespace
}  // namespace penstock::bench

int main(int argc, char** argv) {
  CLI::App app("Compares small calls in processes with and without devices.");
  int rounds = 15;
  int calls = 20000;
  std::string only;
  app.add_option("--rounds", rounds)
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  app.add_option("--calls", calls)
      ->check(CLI::Range(10, 10000000))
      ->capture_default_str();
  app.add_option("--only", only, "measure one kind, in this process")
      ->check(CLI::IsMember({"devices", "none"}));
  CLI11_PARSE(app, argc, argv);
  if (only.empty()) return penstock::bench::Compare(rounds, calls);
  std::printf("%.3f\n", penstock::bench::Measure(only == "devices", calls));
}
