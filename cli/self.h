// Finds and executes programs that were installed or built with this one.

#ifndef PENSTOCK_CLI_SELF_H_
#define PENSTOCK_CLI_SELF_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "preload/launch.h"

namespace penstock::cli {

// Returns the file of this program.
std::string OwnFile();

// A program that was installed or built with this one.
struct Companion {
  std::string name;    // "rpc", in /usr/libexec/penstock
  std::string target;  // "bench/rpc", in Bazel's output
};

// Replaces this process by the companion, with these arguments. Returns only on
// failure, with the reason. NOT_FOUND lists the searched places.
absl::Status BecomeCompanion(const Companion& companion,
                             const std::string& called,
                             const std::vector<std::string>& arguments,
                             const preload::Environment& environment);

// Ignores SIGPIPE. If the reader of a pipe is gone, write() then returns an
// error instead of killing the process.
void IgnoreSigpipe();

// Replaces this process by the program, with the signal settings as they were
// before IgnoreSigpipe(). Returns only on failure, with the reason.
absl::Status BecomeProgram(const preload::Launch& launch);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_SELF_H_
