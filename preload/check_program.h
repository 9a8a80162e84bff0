// Checks from a program's file if Penstock can carry the program.

#ifndef PENSTOCK_PRELOAD_CHECK_PROGRAM_H_
#define PENSTOCK_PRELOAD_CHECK_PROGRAM_H_

#include <string>

#include "absl/status/status.h"

namespace penstock::preload {

// Checks a program before it runs. Returns OK if the file shows no obstacle.
// Libraries that the program loads at run time are checked later, by the stub.
// For a script, checks its interpreter; `path` is PATH, for "#!/usr/bin/env
// NAME".
//
// Returns FAILED_PRECONDITION, with the reason, for the programs in the list
// below, and another code if the file cannot be read:
//
// - a static program;
// - a program that has gRPC linked into it, or uses another release of gRPC;
// - a program that is built with a sanitizer;
// - a program that gets more rights than its caller;
// - a program for another processor or C library.
absl::Status CheckProgram(const std::string& file, const std::string& path);

}  // namespace penstock::preload

#endif  // PENSTOCK_PRELOAD_CHECK_PROGRAM_H_
