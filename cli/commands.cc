// The list of all commands. No other file names them all.

#include "cli/bench.h"
#include "cli/command.h"
#include "cli/doctor.h"
#include "cli/ping.h"
#include "cli/ps.h"
#include "cli/run.h"
#include "cli/script_commands.h"
#include "cli/serve.h"
#include "cli/top.h"

namespace penstock::cli {

std::vector<std::unique_ptr<Command>> AllCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeDoctor());
  commands.push_back(MakePing());
  commands.push_back(MakeServe());
  commands.push_back(MakeRun());
  commands.push_back(MakeTop());
  commands.push_back(MakeBench());
  commands.push_back(MakePsServe());
  commands.push_back(MakePsStatus());
  commands.push_back(MakePsDrain());
  commands.push_back(MakePsRebalance());
  commands.push_back(MakePsAdd());
  commands.push_back(MakePsCheckpoint());
  commands.push_back(MakePsInspect());
  commands.push_back(MakePsVerify());
  commands.push_back(MakeCompletion());
  commands.push_back(MakeMan());
  return commands;
}

}  // namespace penstock::cli
