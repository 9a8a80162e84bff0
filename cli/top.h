// penstock top: shows the activity of a process, live.

#ifndef PENSTOCK_CLI_TOP_H_
#define PENSTOCK_CLI_TOP_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakeTop();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TOP_H_
