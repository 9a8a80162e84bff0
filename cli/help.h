// Formats the text of --help.

#ifndef PENSTOCK_CLI_HELP_H_
#define PENSTOCK_CLI_HELP_H_

#include <string>

#include "cli/program.h"

namespace penstock::cli {

// Returns the help of one command. For the root, returns the help of the
// program.
std::string HelpOf(const Program& program, const CLI::App& app,
                   const Output& out);

// Returns the part of the usage after the name: "[OPTIONS] [TARGET]".
std::string UsageOf(const Program& program, const CLI::App& app);
// Returns "-n, --count=N", or "TARGET".
std::string OptionText(const CLI::Option& option);

// Texts that the help and the man page share.
constexpr char kSummary[] =
    "see, try and measure gRPC over shared memory and RDMA";
constexpr char kUsageCode[] = "the command line is wrong";

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_HELP_H_
