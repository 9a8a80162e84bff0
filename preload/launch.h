// Runs a program with the stub preloaded, for `penstock run`:
//
//   absl::StatusOr<preload::Launch> launch = preload::Plan(arguments, {...});
//   if (!launch.ok()) -> print its message, exit with ExitCodeOf()
//   if (!launch->why_not.empty()) -> print that, as one line
//   absl::Status status = preload::Exec(*launch);  // returns only on failure
//   -> print its message, exit with ExitCodeOf()

#ifndef PENSTOCK_PRELOAD_LAUNCH_H_
#define PENSTOCK_PRELOAD_LAUNCH_H_

#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace penstock::preload {

// Environment variables: their values by name.
using Environment = std::map<std::string, std::string>;

// Returns the environment of this process.
Environment OwnEnvironment();

// The stub, and the library that the stub opens. If `library` is empty, the
// stub finds the library itself.
struct Libraries {
  std::string stub;
  std::string library;
};

// Returns the libraries that were installed or built with the running program.
// `self` is the program's file, the target of /proc/self/exe. Returns
// NOT_FOUND, with the searched places.
absl::StatusOr<Libraries> FindLibraries(const std::string& self);

// A program to run.
struct Launch {
  std::string file;
  std::vector<std::string> arguments;  // the first is the name, as given
  Environment environment;
  // The reason for running the program without Penstock; empty if the stub is
  // preloaded.
  std::string why_not;
};

// Returns how to run the command `arguments` with Penstock. `arguments` must
// not be empty. The program's environment is `environment`, overridden by
// `settings` such as {"PENSTOCK_FABRICS": "shm"}. LD_PRELOAD names the stub
// after the libraries that it already names.
//
// Returns an error if the program must not run:
// - NOT_FOUND if there is no such program;
// - PERMISSION_DENIED if the program is not executable;
// - FAILED_PRECONDITION if PENSTOCK_POLICY is require, and the program cannot
//   use Penstock or `libraries` are unusable.
absl::StatusOr<Launch> Plan(const std::vector<std::string>& arguments,
                            const absl::StatusOr<Libraries>& libraries,
                            Environment environment,
                            const Environment& settings);

// Replaces this process by the program, whose exit code becomes this process's.
// Returns only on failure, with the reason.
absl::Status Exec(const Launch& launch);

// Returns the exit code for a program that did not run, like a shell: 127 if
// there is no such program, and otherwise 126.
int ExitCodeOf(const absl::Status& status);

}  // namespace penstock::preload

#endif  // PENSTOCK_PRELOAD_LAUNCH_H_
