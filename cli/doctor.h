// penstock doctor: reports possible paths of a connection, and obstacles.

#ifndef PENSTOCK_CLI_DOCTOR_H_
#define PENSTOCK_CLI_DOCTOR_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakeDoctor();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_H_
