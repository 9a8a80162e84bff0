// Finds a program as a shell does.

#ifndef PENSTOCK_PRELOAD_FIND_PROGRAM_H_
#define PENSTOCK_PRELOAD_FIND_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"

namespace penstock::preload {

// Returns the file of the program `name`: itself if it has a slash, else the
// first of that name in the folders of `path` that may be executed. NOT_FOUND
// if there is none; PERMISSION_DENIED if there is one, but not to be executed,
// or it is a folder.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& path);

}  // namespace penstock::preload

#endif  // PENSTOCK_PRELOAD_FIND_PROGRAM_H_
