// penstock ps inspect, penstock ps verify.

#include <cstdint>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "cli/interrupt.h"
#include "cli/progress_line.h"
#include "cli/ps.h"
#include "ps/checkpoint/posix_files.h"
#include "ps/checkpoint/report.h"

namespace penstock::cli {
namespace {

namespace checkpoint = ps::checkpoint;

// The checkpoint folder argument of both commands.
class Folder {
 public:
  void Declare(CLI::App* app, const std::string& without_step) {
    app->add_option("folder", path_, "the folder of the servers' --checkpoints")
        ->type_name("DIR")
        ->required();
    given_step_ = app->add_option(
        "--step", step_,
        absl::StrCat("the checkpoint of this step (default: ", without_step,
                     ")"));
    given_step_->type_name("N");
    app->add_flag("--json", json_, "print one JSON object");
  }

  absl::StatusOr<std::unique_ptr<checkpoint::Files>> Open() const {
    return checkpoint::OpenFolder(path_);
  }
  const std::string& path() const { return path_; }
  absl::optional<uint64_t> step() const {
    if (given_step_->count() == 0) return absl::nullopt;
    return step_;
  }
  checkpoint::Form form() const {
    return json_ ? checkpoint::Form::kJson : checkpoint::Form::kText;
  }

 private:
  std::string path_;
  CLI::Option* given_step_ = nullptr;
  uint64_t step_ = 0;
  bool json_ = false;
};

absl::StatusOr<int> Show(const absl::StatusOr<checkpoint::Report>& report,
                         const std::string& folder, const Context& context) {
  if (!report.ok()) {
    return absl::Status(report.status().code(),
                        absl::StrCat(folder, ": ", report.status().message()));
  }
  context.out->Write(context.wants_json ? report->text
                                        : Fitted(report->text, *context.out));
  return report->is_good ? kOk : kFailed;
}

class PsInspect final : public Command {
 public:
  Manual manual() const override {
    return {
        "ps inspect",
        "lists the checkpoints in a folder, or the contents of one",
        "Without --step, lists all checkpoints, the newest first: time, size, "
        "and whether each is full or based on another. With --step, lists the "
        "tables, shards and clocks of one. Reads only manifests and the ends "
        "of shards, and changes nothing: penstock ps verify reads every byte.",
        {{"penstock ps inspect /data/checkpoints", "lists them"},
         {"penstock ps inspect /data/checkpoints --step=1200",
          "the contents of that checkpoint"}},
        "every examined checkpoint is valid",
        "a checkpoint is damaged, or there is none of that step"};
  }
  void Declare(CLI::App* app) override {
    folder_.Declare(app, "list them all");
  }
  absl::StatusOr<int> Run(const Context& context) override {
    const auto files = folder_.Open();
    if (!files.ok()) return files.status();
    return Show(
        checkpoint::Inspect(files->get(), folder_.step(), folder_.form()),
        folder_.path(), context);
  }

 private:
  Folder folder_;
};

class PsVerify final : public Command {
 public:
  Manual manual() const override {
    return {
        "ps verify",
        "reads every byte of a checkpoint, and reports damage",
        "Reads the newest checkpoint, or that of --step, and the checkpoints "
        "that it is based on. Compares all bytes with their checksums. Changes "
        "nothing, and may run while the servers do. Ctrl-C ends it.",
        {{"penstock ps verify /data/checkpoints", "the newest"},
         {"penstock ps verify /data/checkpoints --step=1200 --json",
          "another checkpoint, for a program"}},
        "the checkpoint is valid: a restore will succeed",
        "the checkpoint is damaged or missing, or Ctrl-C ended the command"};
  }
  void Declare(CLI::App* app) override { folder_.Declare(app, "the newest"); }
  absl::StatusOr<int> Run(const Context& context) override {
    WatchInterrupts();
    const auto files = folder_.Open();
    if (!files.ok()) return files.status();
    return Show(Verify(files->get()), folder_.path(), context);
  }

 private:
  absl::StatusOr<checkpoint::Report> Verify(checkpoint::Files* files) const {
    ProgressLine line;
    return checkpoint::VerifyAndReport(files, folder_.step(), folder_.form(),
                                       [&](uint64_t done, uint64_t total) {
                                         line.Show(done, total);
                                         return !Interrupted();
                                       });
  }

  Folder folder_;
};

}  // namespace

std::unique_ptr<Command> MakePsInspect() {
  return std::make_unique<PsInspect>();
}

std::unique_ptr<Command> MakePsVerify() { return std::make_unique<PsVerify>(); }

}  // namespace penstock::cli
