// The list of commands: the one place that names each.

#include "cli/command.h"
#include "cli/doctor.h"

namespace penstock::cli {

std::vector<std::unique_ptr<Command>> AllCommands() {
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeDoctor());
  return commands;
}

}  // namespace penstock::cli
