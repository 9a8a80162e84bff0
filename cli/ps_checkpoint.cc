#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cli/interrupt.h"
#include "cli/progress_line.h"
#include "cli/ps.h"
#include "cli/ps/status_view.h"
#include "cli/ps_servers.h"
#include "cli/text/units.h"
#include "nlohmann/json.hpp"
#include "ps/client/checkpoint.h"
#include "ps/client/training_connection.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 400;

std::string ResultText(const ps::CheckpointResult& result) {
  std::string text =
      absl::StrCat("checkpoint of step ", result.step, ": ",
                   result.is_incremental ? "incremental" : "full", ", ",
                   BytesText(result.bytes), "\n");
  if (!result.removed_steps.empty()) {
    absl::StrAppend(&text, "removed: the checkpoints of step ",
                    absl::StrJoin(result.removed_steps, ", "), "\n");
  }
  if (result.is_joined) {
    absl::StrAppend(&text, "another caller has written it meanwhile\n");
  } else {
    absl::StrAppend(&text, "the folder has ", result.checkpoints,
                    result.checkpoints == 1 ? " checkpoint" : " checkpoints",
                    " with ", BytesText(result.checkpoints_bytes), "\n");
  }
  return text;
}

std::string ResultJson(const ps::CheckpointResult& result) {
  const nlohmann::ordered_json json = {
      {"step", result.step},
      {"incremental", result.is_incremental},
      {"joined", result.is_joined},
      {"bytes", result.bytes},
      {"checkpoints", result.checkpoints},
      {"checkpoints_bytes", result.checkpoints_bytes},
      {"removed_steps", result.removed_steps}};
  return json.dump(2) + "\n";
}

// Returns the channels in the order of the training. Otherwise returns an error
// that names the servers as the user wrote them.
absl::StatusOr<PsServers::Channels> InOrder(
    const PsServers::Channels& channels,
    const std::vector<ServerStatus>& servers) {
  const std::vector<std::string> problems = Problems(servers);
  if (!problems.empty()) return absl::UnavailableError(problems.front());
  PsServers::Channels in_order(servers.size());
  for (size_t i = 0; i < servers.size(); ++i) {
    const ps::v1::ServerReport& report = servers[i].report;
    if (report.run() == 0) {
      return absl::FailedPreconditionError(
          absl::StrCat(servers[i].name,
                       " has no model yet: there is nothing to write before "
                       "worker 0 has defined one"));
    }
    // Sorts the channels. Problems() has excluded two servers with the same
    // position.
    if (report.servers() != servers.size() ||
        report.server() >= servers.size()) {
      return absl::InvalidArgumentError(absl::StrCat(
          servers[i].name, " is one of ", report.servers(),
          " servers of a training, and ", servers.size(),
          servers.size() == 1 ? " was" : " were", " named: name all of them"));
    }
    in_order[report.server()] = channels[i];
  }
  return in_order;
}

class PsCheckpoint final : public Command {
 public:
  Manual manual() const override {
    return {
        "ps checkpoint",
        "makes the servers of a training write a checkpoint",
        "Name all servers of the training, in any order. They write in "
        "parallel while training continues, each into the folder of its "
        "--checkpoints. The command ends when the checkpoint is complete "
        "and safe on disk. If it fails there is no new checkpoint, and "
        "older ones are unchanged. A terminal shows a progress bar. Ctrl-C "
        "ends the command without a checkpoint, unless every byte is written "
        "already. Another caller may then begin one immediately.\n\nTo start "
        "from a checkpoint, start the servers with penstock ps serve "
        "--checkpoints=DIR --restore=newest.",
        {{"penstock ps checkpoint ps0:2222 ps1:2222", "a full checkpoint"},
         {"penstock ps checkpoint ps0:2222 ps1:2222 --incremental --keep=5",
          "the changes since the last checkpoint; keeps the newest five"}},
        "the checkpoint is written",
        "there is no new checkpoint: the line above has the reason, or Ctrl-C "
        "ended the command"};
  }

  void Declare(CLI::App* app) override {
    servers_.Declare(app);
    app->add_flag(
        "--incremental", options_.incremental,
        "write only the changes since the newest checkpoint, if possible");
    app->add_option("--keep", options_.keep,
                    "remove all but the newest N (default: remove none)")
        ->type_name("N");
    app->add_option("--within", within_text_, "the time limit (default 600s)")
        ->type_name("TIME");
    app->add_flag("--json", json_, "print one JSON object");
  }

  absl::Status Check() override {
    const auto within = ParseLimit("--within", within_text_);
    if (!within.ok()) return within.status();
    options_.timeout = *within;
    return servers_.Check();
  }

  absl::StatusOr<int> Run(const Context& context) override {
    const auto channels = servers_.Open();
    if (!channels.ok()) return channels.status();
    auto in_order = InOrder(*channels, servers_.Describe(*channels));
    if (!in_order.ok()) return in_order.status();
    ps::TrainingConnection::Options how;
    how.servers = *std::move(in_order);
    how.timeout = servers_.timeout();
    how.wait_for_values = false;
    const auto connection = ps::TrainingConnection::Open(how);
    if (!connection.ok()) return Printable(connection.status());
    // Handles Ctrl-C from here on. Earlier, Ctrl-C may end the process
    // immediately, because no server has given this process a turn that it
    // would have to return.
    WatchInterrupts();
    const auto result = Take(**connection);
    if (!result.ok()) return Printable(result.status());
    context.out->Write(json_ ? ResultJson(*result)
                             : Fitted(ResultText(*result), *context.out));
    return kOk;
  }

 private:
  // Takes a checkpoint. Shows progress only on a terminal; scripts read the
  // result.
  absl::StatusOr<ps::CheckpointResult> Take(
      const ps::TrainingConnection& connection) {
    ProgressLine line;
    options_.progress = [&line](absl::string_view text) {
      line.Say(base::Printable(text, kMaxTextBytes));
    };
    options_.written = [&line](uint64_t done, uint64_t total) {
      line.Show(done, total);
    };
    options_.interrupted = Interrupted;
    return ps::TakeCheckpoint(connection, options_);
  }

  static absl::Status Printable(const absl::Status& status) {
    const absl::string_view message =
        absl::StripPrefix(status.message(), "checkpoint: ");
    return {status.code(), base::Printable(message, kMaxTextBytes)};
  }

  PsServers servers_;
  ps::CheckpointOptions options_;
  std::string within_text_ = "600s";
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakePsCheckpoint() {
  return std::make_unique<PsCheckpoint>();
}

}  // namespace penstock::cli
