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
        "shows the state of parameter servers and their workers",
        "Queries each server of a training once. Shows the server's tables, "
        "the workers that it knows, the steps by which each is behind the "
        "fastest, the gradients that wait for a step to complete, and the "
        "memory of the tables.\n\nName all servers of the training: their "
        "tables are added up. A server that was restarted without the model, "
        "or that belongs to another training, is detected by comparison with "
        "the others.",
        {{"penstock ps status ps0:2222 ps1:2222", "two servers"},
         {"penstock ps status ps0:2222 --json | jq '.servers[].version'",
          "for a program"},
         {"penstock ps status ps0:2222 --ca=ca.pem --cert=me.pem --key=me.key",
          "over TLS"}},
        "all servers answered, and there is no problem",
        "a server does not answer, has ended its training, or belongs to "
        "another one"};
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
    return AllProblems(servers).empty() ? kOk : kFailed;
  }

 private:
  PsServers servers_;
  bool json_ = false;
};

}  // namespace

std::unique_ptr<Command> MakePsStatus() { return std::make_unique<PsStatus>(); }

}  // namespace penstock::cli
