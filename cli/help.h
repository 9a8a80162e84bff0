// What --help prints.

#ifndef PENSTOCK_CLI_HELP_H_
#define PENSTOCK_CLI_HELP_H_

#include <string>

#include "cli/program.h"

namespace penstock::cli {

// Returns the help of one command, or of the whole program for its root.
std::string HelpOf(const Program& program, const CLI::App& app,
                   const Output& out);

// "[OPTIONS] [TARGET]": what follows the name.
std::string UsageOf(const Program& program, const CLI::App& app);
// "-n, --count=N", or "TARGET".
std::string OptionText(const CLI::Option& option);

// What is there beside options and examples, for help and man page.
constexpr char kSummary[] =
    "see, try and measure gRPC over shared memory and RDMA";
constexpr char kUsageCode[] = "the command line is wrong";

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_HELP_H_
