// What was installed or built with this program, and becoming another one.

#ifndef PENSTOCK_CLI_SELF_H_
#define PENSTOCK_CLI_SELF_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "preload/launch.h"

namespace penstock::cli {

// The file of this program.
std::string OwnFile();

// Another program, which was installed or built with this one.
struct Companion {
  std::string name;    // "rpc", in /usr/libexec/penstock
  std::string target;  // "bench/rpc", in Bazel's output
};

// Becomes the companion, with these arguments. Returns why that failed:
// NOT_FOUND says where it was looked for.
absl::Status BecomeCompanion(const Companion& companion,
                             const std::string& called,
                             const std::vector<std::string>& arguments,
                             const preload::Environment& environment);

// Ignores SIGPIPE: that a reader has gone away is an error of write().
void IgnoreSigpipe();

// Becomes the program, with signals ignored and blocked as main() found them:
// nothing but IgnoreSigpipe() may have changed that. Returns why that failed.
absl::Status BecomeProgram(const preload::Launch& launch);

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_SELF_H_
