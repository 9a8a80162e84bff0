// penstock serve: runs a server for trying things out.

#ifndef PENSTOCK_CLI_SERVE_H_
#define PENSTOCK_CLI_SERVE_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakeServe();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_SERVE_H_
