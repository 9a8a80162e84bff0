// penstock ps drain, rebalance, add.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/interrupt.h"
#include "cli/ps.h"
#include "cli/ps_servers.h"
#include "cli/text/units.h"
#include "nlohmann/json.hpp"
#include "ps/client/pause_probe.h"
#include "ps/client/training_connection.h"
#include "ps/membership/membership.h"
#include "ps/views/moving.h"
#include "transport/base/printable.h"

namespace penstock::cli {
namespace {

constexpr size_t kMaxTextBytes = 1000;

absl::Status Shortened(const absl::Status& status) {
  return {status.code(), base::Printable(status.message(), kMaxTextBytes)};
}

// The common part of the three commands.
class PsMove : public Command {
 public:
  void Declare(CLI::App* app) override {
    servers_.DeclareTraining(app);
    DeclareServer(app);
    app->add_option("--within", within_text_, "the time limit (default 600s)")
        ->type_name("TIME");
    app->add_flag("--json", json_, "print one JSON object at the end");
  }

  absl::Status Check() override {
    const auto within = ParseLimit("--within", within_text_);
    if (!within.ok()) return within.status();
    within_ = *within;
    return servers_.Check();
  }

  absl::StatusOr<int> Run(const Context& context) override {
    WatchInterrupts();
    const auto member = ps::membership::Membership::Open(
        servers_.training(), servers_.timeout(), Interrupted);
    if (!member.ok()) return Shortened(member.status());
    const auto probe = StartProbe();
    ps::views::MovingOptions options;
    options.member = member->get();
    options.timeout = within_;
    options.interrupted = Interrupted;
    options.progress = [&](const std::string& line) {
      steps_.push_back(base::Printable(line, kMaxTextBytes));
      if (!json_) context.out->Write(steps_.back() + "\n");
    };
    const absl::Status moved = Move(options);
    if (!moved.ok()) return Shortened(moved);
    context.out->Write(json_ ? Json(probe) : Text(probe));
    return kOk;
  }

 protected:
  using Probe = absl::StatusOr<std::unique_ptr<ps::PauseProbe>>;

  // Adds the arguments about the server.
  virtual void DeclareServer(CLI::App* app) = 0;
  virtual absl::Status Move(const ps::views::MovingOptions& options) = 0;
  // Returns a sentence that reports the success.
  virtual std::string Result() const = 0;

 private:
  // Starts to measure the pauses of the training. Returns an error if the
  // servers do not answer. The move itself does not need their answers.
  Probe StartProbe() {
    const auto channels = servers_.Open();
    if (!channels.ok()) return channels.status();
    ps::TrainingConnection::Options how;
    how.servers = *channels;
    how.timeout = servers_.timeout();
    how.wait_for_values = false;
    const auto connection = ps::TrainingConnection::Open(how);
    if (!connection.ok()) return connection.status();
    return std::make_unique<ps::PauseProbe>(*connection, within_);
  }

  static absl::StatusOr<ps::PauseProbe::Pauses> PausesOf(const Probe& probe) {
    if (!probe.ok()) return probe.status();
    ps::PauseProbe::Pauses pauses = (*probe)->pauses();
    if (!pauses.failure.ok()) return pauses.failure;
    return pauses;
  }

  std::string Text(const Probe& probe) const {
    const auto pauses = PausesOf(probe);
    return absl::StrCat(
        Result(), "\n",
        pauses.ok() ? absl::StrCat("longest pause of a pull: ",
                                   absl::FormatDuration(absl::Trunc(
                                       pauses->longest, absl::Milliseconds(1))),
                                   ", of ", pauses->pulls, " pulls\n")
                    : absl::StrCat("pauses of pulls were not measured: ",
                                   base::Printable(pauses.status().message(),
                                                   kMaxTextBytes),
                                   "\n"));
  }

  std::string Json(const Probe& probe) const {
    const auto pauses = PausesOf(probe);
    nlohmann::ordered_json json = {{"result", Result()}, {"steps", steps_}};
    if (pauses.ok()) {
      json["longest_pause_ms"] = absl::ToDoubleMilliseconds(pauses->longest);
      json["pulls"] = pauses->pulls;
    }
    return json.dump(2) + "\n";
  }

  PsServers servers_;
  std::string within_text_ = "600s";
  absl::Duration within_;
  bool json_ = false;
  std::vector<std::string> steps_;
};

class PsDrain final : public PsMove {
 public:
  Manual manual() const override {
    return {
        "ps drain",
        "takes all shards off a parameter server",
        "Moves the shards of a server with --replicas to the other servers, "
        "one after another, while training continues. The command ends when "
        "the server holds nothing: then stop it. Shards have all their copies "
        "meanwhile.\n\nPrints each step, and the longest pause that a pull of "
        "all shards saw. If the command fails, or is ended by Ctrl-C, the "
        "server keeps what it still has. A server that was drained takes part "
        "again when it is started again, or after penstock ps add.",
        {{"penstock ps drain etcd://etcd0:2379/digits ps-2",
          "before the host of ps-2 is switched off"},
         {"penstock ps drain etcd://etcd0:2379/digits ps-2 --within=60s",
          "fails after a minute"}},
        "the server holds nothing",
        "the server keeps what it has: the line above has the reason"};
  }

 protected:
  void DeclareServer(CLI::App* app) override {
    app->add_option("server", server_, "the server's name or address")
        ->type_name("SERVER")
        ->required();
  }
  absl::Status Move(const ps::views::MovingOptions& options) override {
    return ps::views::DrainServer(options, server_);
  }
  std::string Result() const override {
    return absl::StrCat(server_, " holds nothing");
  }

 private:
  std::string server_;
};

class PsRebalance final : public PsMove {
 public:
  Manual manual() const override {
    return {"ps rebalance",
            "moves shards back to their own parameter servers",
            "After a server was lost, other servers lead its shards. This "
            "command moves each shard back to its own server, and its backups "
            "to the next ones, once these have caught up. Training continues. "
            "Shards of servers that are gone stay where they are.",
            {{"penstock ps rebalance etcd://etcd0:2379/digits",
              "when a lost server is back"}},
            "all shards are at their own servers, as far as these run",
            "some shards stay where they are: the line above has the reason"};
  }

 protected:
  void DeclareServer(CLI::App*) override {}
  absl::Status Move(const ps::views::MovingOptions& options) override {
    return ps::views::Rebalance(options);
  }
  std::string Result() const override {
    return "all shards are at their own servers, as far as these run";
  }
};

class PsAdd final : public PsMove {
 public:
  Manual manual() const override {
    return {
        "ps add",
        "lets a new or drained parameter server take part",
        "A new server, at any address, takes the place of a server that is "
        "gone for good. Start it with the flags of the others, and then name "
        "it here. It gets the copies that the lost server had. A training "
        "keeps its number of servers. After that, penstock ps rebalance makes "
        "the new server lead the shard of its place.\n\nA server that was "
        "drained, and still runs, may get replicas again.",
        {{"penstock ps add etcd://etcd0:2379/digits ps-7",
          "ps-7 replaces the server that is gone"},
         {"penstock ps add etcd://etcd0:2379/digits ps-7 "
          "--instead-of=10.0.0.2:2222",
          "two servers are gone"}},
        "the server takes part, and shards have all their copies",
        "the line above has the reason"};
  }

 protected:
  void DeclareServer(CLI::App* app) override {
    app->add_option("server", server_, "the server's name or address")
        ->type_name("SERVER")
        ->required();
    app->add_option("--instead-of", instead_of_,
                    "the address of the lost server (default: the only one "
                    "that is gone)")
        ->type_name("HOST:PORT");
  }
  absl::Status Move(const ps::views::MovingOptions& options) override {
    return ps::views::AddServer(options, server_, instead_of_);
  }
  std::string Result() const override {
    return absl::StrCat(server_, " takes part");
  }

 private:
  std::string server_;
  std::string instead_of_;
};

}  // namespace

std::unique_ptr<Command> MakePsDrain() { return std::make_unique<PsDrain>(); }
std::unique_ptr<Command> MakePsRebalance() {
  return std::make_unique<PsRebalance>();
}
std::unique_ptr<Command> MakePsAdd() { return std::make_unique<PsAdd>(); }

}  // namespace penstock::cli
