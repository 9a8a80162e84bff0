// Runs a program with the stub preloaded: what `penstock run` is made of.
//
//   absl::StatusOr<preload::Launch> launch = preload::Plan(arguments, {...});
//   if (!launch.ok()) -> its message, and exit with ExitCodeOf(launch.status())
//   if (!launch->why_not.empty()) -> say so, in a line
//   absl::Status status = preload::Exec(*launch);   // does not return, or
//   fails
//   -> its message, and exit with ExitCodeOf(status)

#ifndef PENSTOCK_PRELOAD_LAUNCH_H_
#define PENSTOCK_PRELOAD_LAUNCH_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::preload {

// {name: value}
using Environment = std::map<std::string, std::string>;

// This process's own.
Environment OwnEnvironment();

// The stub, and the library that it is to open; an empty one is found by the
// stub itself.
struct Libraries {
  std::string stub;
  std::string library;
};

// Returns those that were installed or built with the program that runs: `self`
// is its file, as /proc/self/exe leads to it. NOT_FOUND says where they were
// looked for.
absl::StatusOr<Libraries> FindLibraries(const std::string& self);

// What is going to run.
struct Launch {
  std::string file;
  std::vector<std::string> arguments;  // the first is the name, as given
  Environment environment;
  // Why the program cannot be carried and runs as it is; empty if the stub is
  // preloaded.
  std::string why_not;
};

// Plans to run `arguments`, which are not empty, in `environment`, with the
// stub preloaded behind what is preloaded there. `settings`
// ("PENSTOCK_FABRICS": "shm") come before those of the environment.
//
// NOT_FOUND or PERMISSION_DENIED if there is no such program, or it may not be
// executed. FAILED_PRECONDITION if it cannot be carried, or `libraries` are not
// usable, and PENSTOCK_POLICY is require.
absl::StatusOr<Launch> Plan(const std::vector<std::string>& arguments,
                            const absl::StatusOr<Libraries>& libraries,
                            Environment environment,
                            const Environment& settings);

// Becomes the program: its exit code is then this process's. Returns why that
// failed.
absl::Status Exec(const Launch& launch);

// The exit code for a program that did not run, as shells have it: 127 if there
// is none, else 126.
int ExitCodeOf(const absl::Status& status);

}  // namespace penstock::preload

#endif  // PENSTOCK_PRELOAD_LAUNCH_H_
