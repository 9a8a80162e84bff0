// penstock doctor: what would carry a connection, and what is in its way.

#ifndef PENSTOCK_CLI_DOCTOR_H_
#define PENSTOCK_CLI_DOCTOR_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakeDoctor();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_DOCTOR_H_
