#include "cli/run.h"

#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/program.h"
#include "cli/self.h"
#include "preload/launch.h"
#include "transport/settings/description.h"

namespace penstock::cli {
namespace {

// An option that sets a PENSTOCK_ variable.
struct Setting {
  const char* option;
  const char* variable;
  std::optional<std::string> value;  // empty if not given
};

// Returns an error, with the option's name, if the value is invalid.
absl::Status CheckSetting(const Setting& setting) {
  if (!setting.value.has_value()) return absl::OkStatus();
  absl::Status status = CheckVariable(setting.variable, *setting.value);
  if (status.ok()) return status;
  absl::string_view message = status.message();
  absl::ConsumePrefix(&message, setting.variable);
  return absl::InvalidArgumentError(absl::StrCat(setting.option, message));
}

// Makes `*path` absolute, because the program may change its folder before it
// opens the file.
absl::Status MakeAbsolute(const char* option, std::string* path) {
  if (path->empty() || absl::EndsWith(*path, "/")) {
    return absl::InvalidArgumentError(
        absl::StrCat(option, "=", *path, " names no file"));
  }
  std::error_code error;
  const std::filesystem::path absolute =
      std::filesystem::absolute(*path, error);
  if (error) {
    return absl::InvalidArgumentError(absl::StrCat(
        option, "=", *path, " is in the current folder, which is ",
        "not there (", error.message(), "): use an absolute path"));
  }
  *path = absolute.string();
  return absl::OkStatus();
}

class RunProgram final : public Command {
 public:
  Manual manual() const override {
    Manual manual = {
        "run",
        "runs a gRPC program over Penstock, unmodified",
        "PROGRAM is a compiled program, in C++ or another language, that is "
        "linked to gRPC's shared library of release 1.51.1. Or it is a Python "
        "program with any grpcio. A preloaded library makes its channels and "
        "servers use Penstock; peers without Penstock are served over "
        "HTTP/2.\n\nA program may be unsuitable: gRPC is linked into it, its "
        "gRPC is of another release, or it is set-uid. Such a program runs "
        "without Penstock, and a line gives the reason.\n\nPenstock's settings "
        "come from the environment; the options "
        "below override them. Programs that PROGRAM starts use Penstock, too.",
        {{"penstock run ./server --port=50051", "a compiled server"},
         {"penstock run python3 client.py", "a Python program"},
         {"penstock run --fabrics=shm,tcp --require -- ./server",
          "over these fabrics; fails rather than use HTTP/2"}},
        "PROGRAM ended with 0; PROGRAM's exit code is this command's",
        "PROGRAM ended with 1; as in a shell, 127 means that there is no such "
        "program, and 126 that it cannot be run"};
    manual.operands = "PROGRAM [ARGUMENT...]";
    return manual;
  }

  void Declare(CLI::App* app) override {
    app->add_option("--fabrics", fabrics_,
                    "the fabrics to use, the best first: shm, verbs, tcp")
        ->type_name("LIST");
    app->add_flag(
        "--require", require_,
        "fail if Penstock cannot be used, on this side or by the peer");
    app->add_option("--metrics", metrics_,
                    "serve metrics there, for Prometheus and penstock top")
        ->type_name("[HOST:]PORT");
    app->add_option("--trace", trace_,
                    "write a trace for Perfetto to this file; %p becomes the "
                    "process's number")
        ->type_name("FILE");
  }

  absl::Status Check() override {
    if (trace_.has_value()) {
      absl::Status status = MakeAbsolute("--trace", &*trace_);
      if (!status.ok()) return status;
    }
    for (const Setting& setting : Settings()) {
      absl::Status status = CheckSetting(setting);
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
                      context.environment, Variables());
    if (!launch.ok()) return Failed(launch.status());
    if (!launch->why_not.empty()) {
      Complain(kName, absl::StrCat("Penstock is not used: ", launch->why_not));
    }
    return Failed(BecomeProgram(*launch));
  }

 private:
  static constexpr char kName[] = "penstock run";

  static int Failed(const absl::Status& status) {
    Complain(kName, status.message());
    return preload::ExitCodeOf(status);
  }

  std::vector<Setting> Settings() const {
    std::optional<std::string> policy;
    if (require_) policy = "require";
    return {{"--fabrics", "PENSTOCK_FABRICS", fabrics_},
            {"--require", "PENSTOCK_POLICY", policy},
            {"--metrics", "PENSTOCK_METRICS", metrics_},
            {"--trace", "PENSTOCK_TRACE", trace_}};
  }

  preload::Environment Variables() const {
    preload::Environment variables;
    for (const Setting& setting : Settings()) {
      if (setting.value.has_value()) {
        variables[setting.variable] = *setting.value;
      }
    }
    return variables;
  }

  std::optional<std::string> fabrics_;
  bool require_ = false;
  std::optional<std::string> metrics_;
  std::optional<std::string> trace_;
};

}  // namespace

std::unique_ptr<Command> MakeRun() { return std::make_unique<RunProgram>(); }

}  // namespace penstock::cli
