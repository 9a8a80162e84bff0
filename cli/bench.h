// penstock bench: runs the benchmark of all transports.

#ifndef PENSTOCK_CLI_BENCH_H_
#define PENSTOCK_CLI_BENCH_H_

#include <memory>

#include "cli/command.h"

namespace penstock::cli {

std::unique_ptr<Command> MakeBench();

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_BENCH_H_
