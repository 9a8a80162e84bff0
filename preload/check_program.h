// Whether a program can be carried, as far as its file tells.

#ifndef PENSTOCK_PRELOAD_CHECK_PROGRAM_H_
#define PENSTOCK_PRELOAD_CHECK_PROGRAM_H_

#include <string>

#include "absl/status/status.h"

namespace penstock::preload {

// Looks at the program before it runs. OK if nothing speaks against it; what it
// loads once it runs, only the stub can tell. FAILED_PRECONDITION, with the
// reason, if it cannot be carried: it is static, has gRPC linked into it or
// another release of it, is built with a sanitizer, gets more rights than its
// caller, or is for another processor or C library. A script is what runs it:
// `path` is PATH, for "#!/usr/bin/env NAME". Another code if the file cannot be
// read.
absl::Status CheckProgram(const std::string& file, const std::string& path);

}  // namespace penstock::preload

#endif  // PENSTOCK_PRELOAD_CHECK_PROGRAM_H_
