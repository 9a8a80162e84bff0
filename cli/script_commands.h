// penstock completion and penstock man, for shells and packages. Their output
// is generated from the tree of commands. --help omits them.

#ifndef PENSTOCK_CLI_SCRIPT_COMMANDS_H_
#define PENSTOCK_CLI_SCRIPT_COMMANDS_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakeCompletion();
std::unique_ptr<Command> MakeMan();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_SCRIPT_COMMANDS_H_
