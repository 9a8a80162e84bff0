#include <memory>
#include <string>
#include <vector>

#include "cli/ps.h"
#include "cli/ps/status_view.h"
#include "cli/ps_servers.h"

namespace penstock::cli {
namespace {

class PsStatus final : public Command {
 public:
  Manual manual() const override {
    return {
        "ps status",
        "says how parameter servers and their workers are",
        "Asks each server of a training once. Says what it serves, which "
        "workers it knows and how many steps each is behind the fastest, how "
        "many gradients are held until a step has all of its own, and what the "
        "tables take.\n\n"
        "Name all servers of the training: their tables are added up, and "
        "one that was started anew without the model, or belongs to another "
        "training, is found by its difference from the others.",
        {{"penstock ps status ps0:2222 ps1:2222", "two servers"},
         {"penstock ps status ps0:2222 --json | jq '.servers[].version'",
          "for a program"},
         {"penstock ps status ps0:2222 --ca=ca.pem --cert=me.pem --key=me.key",
          "over TLS"}},
        "all of them answered, and nothing is wrong",
        "one does not answer, has ended its training, or is of another one"};
  }

  void Declare(CLI::App* app) override {
    servers_.Declare(app);
    app->add_flag("--json", json_, "print one JSON object");
  }

  absl::Status Check() override { return servers_.Check(); }

  absl::StatusOr<int> Run(const Context& context) override {
    const auto channels = servers_.Open();
    if (!channels.ok()) return channels.status();
    const std::vector<ServerStatus> servers = servers_.Describe(*channels);
    context.out->Write(json_ ? StatusJson(servers)
                             : StatusText(servers, *context.out));
    return Problems(servers).empty() ? kOk : kFailed;
  }

 private:
  PsServers servers_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakePsStatus() { return std::make_unique<PsStatus>(); }

}  // namespace penstock::cli
