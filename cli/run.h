// penstock run: runs another program over Penstock.

#ifndef PENSTOCK_CLI_RUN_H_
#define PENSTOCK_CLI_RUN_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakeRun();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_RUN_H_
