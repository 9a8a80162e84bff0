// What is wrong with a command line, for people: CLI11's words are for those
// who write programs.

#ifndef PENSTOCK_CLI_USAGE_ERRORS_H_
#define PENSTOCK_CLI_USAGE_ERRORS_H_

#include <string>

#include "cli/program.h"

namespace penstock::cli {

// Says why `app`, the deepest command that was named, cannot take its words.
std::string UsageError(const Program& program, const CLI::App& app,
                       const CLI::ParseError& error);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_USAGE_ERRORS_H_
