// penstock ps: the parameter server.

#ifndef PENSTOCK_CLI_PS_H_
#define PENSTOCK_CLI_PS_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakePsServe();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_PS_H_
