#include "cli/ps.h"

#include <string>
#include <vector>

#include "cli/self.h"

namespace penstock::cli {
namespace {

class PsServe final : public Command {
 public:
  Manual manual() const override {
    Manual manual = {
        "ps serve",
        "runs a parameter server",
        "Runs one of the servers of a training. It holds the tables of a "
        "model, dense and sparse, and applies the gradients that workers push. "
        "The workers are your own programs.\n\nThe flags are the server's own: "
        "--flags lists them. --checkpoints=DIR is the folder for penstock ps "
        "checkpoint, and --restore=newest starts with the newest valid "
        "checkpoint in it. With PENSTOCK_METRICS=PORT, the server serves its "
        "metrics on that port.",
        {{"penstock ps serve --listen=0.0.0.0:2222 --workers=2",
          "a server that waits for two workers"},
         {"penstock ps serve --listen=0.0.0.0:2222 --workers=2 "
          "--checkpoints=/data --restore=newest",
          "a server that continues an interrupted training"},
         {"penstock ps serve --flags", "all flags of the server"}},
        "SIGINT or SIGTERM ended it",
        "it failed; the line above has the reason"};
    manual.group_summary = "the parameter server";
    manual.operands = "[FLAG...]";
    manual.only_operands = true;
    return manual;
  }

  void Declare(CLI::App*) override {}

  absl::StatusOr<int> Run(const Context& context) override {
    const bool asks = context.operands == std::vector<std::string>{"--flags"};
    return BecomeCompanion(
        {"ps_server", "ps"}, "penstock ps serve",
        asks ? std::vector<std::string>{"--help"} : context.operands,
        context.environment);
  }
};

}  // namespace

std::unique_ptr<Command> MakePsServe() { return std::make_unique<PsServe>(); }

}  // namespace penstock::cli
