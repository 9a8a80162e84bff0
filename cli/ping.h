// penstock ping: shows which path leads to a server, and how long a call takes.

#ifndef PENSTOCK_CLI_PING_H_
#define PENSTOCK_CLI_PING_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakePing();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PING_H_
