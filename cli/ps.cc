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
        "One of the servers of a training: it holds the tables of a model, "
        "dense and sparse, and applies what its workers push. The workers are "
        "programs of your own.\n\nThe flags are the server's: --flags lists "
        "them. --checkpoints=DIR is the folder that penstock ps checkpoint has "
        "them write to, and --restore=newest begins with the newest good one "
        "of it. With PENSTOCK_METRICS=PORT it serves its metrics there.",
        {{"penstock ps serve --listen=0.0.0.0:2222 --workers=2",
          "a server that waits for two workers"},
         {"penstock ps serve --listen=0.0.0.0:2222 --workers=2 "
          "--checkpoints=/data --restore=newest",
          "one that goes on where a training has stopped"},
         {"penstock ps serve --flags", "all flags of the server"}},
        "it was ended by SIGINT or SIGTERM",
        "something failed; the line above says what"};
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
