// Starts child processes for the demos.

#ifndef PENSTOCK_EXAMPLES_COMMON_PROCESS_H_
#define PENSTOCK_EXAMPLES_COMMON_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace penstock::examples {

// Returns the path of the program `name`. Searches the folder of this program,
// and then `elsewhere`, a path relative to this folder. Returns NOT_FOUND, with
// both paths, if there is none.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& elsewhere);

// A running program. The caller reads the program's standard output and writes
// its standard input. The program gets SIGKILL when the object is destroyed, or
// when this process dies for any reason. Move-only. Not thread-safe.
class Process {
 public:
  // Starts a program. The program's environment is this process's environment
  // and `environment`, whose entries have the form "NAME=value".
  static absl::StatusOr<Process> Start(
      const std::string& program, const std::vector<std::string>& flags,
      const std::vector<std::string>& environment = {});

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // Returns a descriptor for poll(), owned by this object. The descriptor is
  // readable if there is output or the output has ended.
  int output() const { return output_; }

  // Reads the available output. Blocks if there is none. Returns false at the
  // end of the output.
  bool ReadSome();

  // Returns the next complete line of the output that was read, without its
  // line end. Returns nullopt if there is none.
  absl::optional<std::string> NextLine();

  // Writes `line` and a newline to the program's standard input. Returns
  // UNAVAILABLE if the program no longer reads.
  absl::Status Tell(const std::string& line);

  // Sends SIGTERM, and returns immediately.
  void Terminate();

  // Blocks until the program has ended. Returns OK if the exit code is 0, and
  // INTERNAL otherwise.
  absl::Status Wait();

 private:
  Process(std::string name, pid_t pid, int output, int input)
      : name_(std::move(name)), pid_(pid), output_(output), input_(input) {}
  void Kill();

  std::string name_;
  pid_t pid_ = -1;  // -1 if reaped or moved from
  int output_ = -1;
  int input_ = -1;
  std::string pending_;  // read but not yet returned
};

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_PROCESS_H_
