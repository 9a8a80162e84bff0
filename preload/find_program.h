// Finds a program as a shell does.

#ifndef PENSTOCK_PRELOAD_FIND_PROGRAM_H_
#define PENSTOCK_PRELOAD_FIND_PROGRAM_H_

#include <string>

#include "absl/status/statusor.h"

namespace penstock::preload {

// Returns the file of the program `name`: `name` itself if it has a slash, and
// otherwise the first executable file with the name in the folders of `path`.
// Returns NOT_FOUND if there is no such file. Returns PERMISSION_DENIED if
// there is one, but it is not executable or is a folder.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& path);

}  // namespace penstock::preload

#endif  // PENSTOCK_PRELOAD_FIND_PROGRAM_H_
