#include "cli/run.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "cli/program.h"
#include "cli/self.h"
#include "preload/launch.h"
#include "transport/settings/description.h"

namespace penstock::cli {
namespace {

class RunProgram final : public Command {
 public:
  Manual manual() const override {
    Manual manual = {
        "run",
        "runs a gRPC program over Penstock without touching it",
        "PROGRAM is compiled, in C++ or another language, and linked to "
        "gRPC's shared library of release 1.51.1, or is a Python program for "
        "which python3-grpcio or grpcio has that release. A library that is "
        "preloaded has its channels and servers use Penstock; peers without "
        "it are served over HTTP/2.\n\nA program that cannot be carried, "
        "because gRPC is linked into it, is of another release, or because "
        "it is set-uid, runs as it is, and a line says why.\n\nThe settings "
        "of Penstock are taken from the environment; the options below come "
        "before them. Programs that PROGRAM starts are carried, too.",
        {{"penstock run ./server --port=50051", "a compiled server"},
         {"penstock run python3 client.py", "a Python program"},
         {"penstock run --fabrics=shm,tcp --require -- ./server",
          "over these only, and rather not at all than over HTTP/2"}},
        "PROGRAM said so: its exit code is this command's",
        "PROGRAM said so; 127 and 126 mean, as in a shell, that it is not "
        "there and that it cannot be run"};
    manual.operands = "PROGRAM [ARGUMENT...]";
    return manual;
  }

  void Declare(CLI::App* app) override {
    app->add_option("--fabrics", fabrics_,
                    "what may carry connections, the best first: shm, verbs, "
                    "tcp")
        ->type_name("LIST");
    app->add_flag("--require", require_,
                  "fail where Penstock cannot be used, here or by the peer");
    app->add_option("--metrics", metrics_,
                    "serve metrics there, to Prometheus and penstock top")
        ->type_name("[HOST:]PORT");
    app->add_option("--trace", trace_,
                    "write a trace for Perfetto; %p becomes the process's "
                    "number")
        ->type_name("FILE");
  }

  absl::Status Check() override {
    for (const auto& [variable, value] : Settings()) {
      absl::Status status = CheckVariable(variable, value);
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::StatusOr<int> Run(const Context& context) override {
    if (context.operands.empty()) {
      Complain(kName, "which program? try: penstock run --help");
      return kUsage;
    }
    const auto launch =
        preload::Plan(context.operands, preload::FindLibraries(OwnFile()),
                      context.environment, Settings());
    if (!launch.ok()) return Failed(launch.status());
    if (!launch->why_not.empty()) {
      Complain(kName, absl::StrCat(launch->why_not, ": it runs as it is"));
    }
    return Failed(BecomeProgram(*launch));
  }

 private:
  static constexpr char kName[] = "penstock run";

  static int Failed(const absl::Status& status) {
    Complain(kName, status.message());
    return preload::ExitCodeOf(status);
  }

  preload::Environment Settings() const {
    preload::Environment settings;
    if (!fabrics_.empty()) settings["PENSTOCK_FABRICS"] = fabrics_;
    if (require_) settings["PENSTOCK_POLICY"] = "require";
    if (!metrics_.empty()) settings["PENSTOCK_METRICS"] = metrics_;
    if (!trace_.empty()) settings["PENSTOCK_TRACE"] = trace_;
    return settings;
  }

  std::string fabrics_;
  bool require_ = false;
  std::string metrics_;
  std::string trace_;
};

}  // namespace

std::unique_ptr<Command> MakeRun() { return std::make_unique<RunProgram>(); }

}  // namespace penstock::cli
