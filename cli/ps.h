// penstock ps: inspects parameter servers and their checkpoints.

#ifndef PENSTOCK_CLI_PS_H_
#define PENSTOCK_CLI_PS_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakePsServe();
std::unique_ptr<Command> MakePsStatus();
std::unique_ptr<Command> MakePsDrain();
std::unique_ptr<Command> MakePsRebalance();
std::unique_ptr<Command> MakePsAdd();
std::unique_ptr<Command> MakePsCheckpoint();
std::unique_ptr<Command> MakePsInspect();
std::unique_ptr<Command> MakePsVerify();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PS_H_
