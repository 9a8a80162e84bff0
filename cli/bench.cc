#include "cli/bench.h"

#include <string>
#include <vector>

#include "cli/self.h"

namespace penstock::cli {
namespace {

// The name of the program that runs the benchmarks. The benchmark is a separate
// program: it starts itself again as its servers, and is linked to libraries
// that no other command needs.
constexpr char kName[] = "penstock bench";

class Bench final : public Command {
 public:
  Manual manual() const override {
    Manual manual = {
        "bench",
        "measures gRPC over every transport of this machine, side by side",
        "Measures latency, bandwidth, and parameter servers over TCP, UNIX "
        "sockets, shared memory and RDMA. One run alternates between the "
        "transports, so that other load of the machine affects all alike. A "
        "transport that does not work here is reported and left out.\n\nThe "
        "flags are the benchmark's own: --flags lists them.",
        {{"penstock bench --quick", "latency at three sizes, half a minute"},
         {"penstock bench --benchmark=push --html=push.html",
          "throughput by size, as a page with plots"},
         {"penstock bench --benchmark=ps-throughput --servers=2 --workers=4",
          "servers and workers as processes"},
         {"penstock bench --flags", "all flags of the benchmark"}},
        "the measurement succeeded",
        "it failed; the line above has the reason"};
    manual.operands = "[FLAG...]";
    manual.only_operands = true;
    return manual;
  }

  void Declare(CLI::App*) override {}

  absl::StatusOr<int> Run(const Context& context) override {
    const bool asks = context.operands == std::vector<std::string>{"--flags"};
    return BecomeCompanion(
        {"rpc", "bench/rpc"}, kName,
        asks ? std::vector<std::string>{"--help"} : context.operands,
        context.environment);
  }
};

}  // namespace

std::unique_ptr<Command> MakeBench() { return std::make_unique<Bench>(); }

}  // namespace penstock::cli
