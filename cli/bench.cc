#include "cli/bench.h"

#include <unistd.h>

#include <filesystem>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/self.h"
#include "preload/launch.h"

namespace penstock::cli {
namespace {

// bench/rpc, a program of its own: it starts itself again as its servers, and
// is linked to what no other command needs.
absl::StatusOr<std::string> FindBenchmark() {
  const std::string folder =
      std::filesystem::path(OwnFile()).parent_path().string();
  const std::string places[] = {
      absl::StrCat(folder, "/../libexec/penstock/rpc"),  // /usr/bin/penstock
      absl::StrCat(folder, "/../bench/rpc/rpc"),  // bazel-bin/cli/penstock
  };
  for (const std::string& place : places) {
    if (access(place.c_str(), X_OK) == 0) return place;
  }
  return absl::NotFoundError(
      absl::StrCat("the benchmark is not there: ", places[0], ", ", places[1],
                   " (bazel build //bench/rpc)"));
}

class Bench final : public Command {
 public:
  Manual manual() const override {
    Manual manual = {
        "bench",
        "measures gRPC over every transport of this machine, side by side",
        "Latency, bandwidth, and what a parameter server does, over TCP, "
        "UNIX sockets, shared memory and RDMA, all in one run by turns, so "
        "that what else the machine does falls on each alike. What a "
        "transport cannot do here is said, and left out.\n\nThe flags are the "
        "benchmark's own: --flags lists them.",
        {{"penstock bench --quick", "latency at three sizes, half a minute"},
         {"penstock bench --benchmark=push --html=push.html",
          "throughput by size, as a page with plots"},
         {"penstock bench --benchmark=ps-throughput --servers=2 --workers=4",
          "servers and workers as processes"},
         {"penstock bench --flags", "all flags of the benchmark"}},
        "it was measured",
        "something failed; the line above says what"};
    manual.operands = "[FLAG...]";
    manual.only_operands = true;
    return manual;
  }

  void Declare(CLI::App*) override {}

  absl::StatusOr<int> Run(const Context& context) override {
    absl::StatusOr<std::string> file = FindBenchmark();
    if (!file.ok()) return file.status();
    preload::Launch launch;
    launch.file = *file;
    launch.arguments = context.operands;
    if (launch.arguments == std::vector<std::string>{"--flags"}) {
      launch.arguments = {"--help"};
    }
    launch.arguments.insert(launch.arguments.begin(), "penstock bench");
    launch.environment = context.environment;
    return BecomeProgram(launch);
  }
};

}  // namespace

std::unique_ptr<Command> MakeBench() { return std::make_unique<Bench>(); }

}  // namespace penstock::cli
