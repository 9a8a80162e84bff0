// What was installed or built with this program, and becoming another one.

#ifndef PENSTOCK_CLI_SELF_H_
#define PENSTOCK_CLI_SELF_H_

#include <string>

#include "absl/status/status.h"
#include "preload/launch.h"

namespace penstock::cli {

// The file of this program.
std::string OwnFile();

// Becomes the program, with the signals as main() found them. Returns why that
// failed.
absl::Status BecomeProgram(const preload::Launch& launch);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_SELF_H_
