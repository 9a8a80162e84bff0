// Child processes of the demo.

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

// Returns the path of the program `name`, next to this one or else at
// `elsewhere`, a path relative to this program's folder. Returns NOT_FOUND,
// which names both.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& elsewhere);

// A running program, of which the caller reads the standard output and writes
// the standard input. It gets SIGKILL when the object is destroyed, or when
// this process dies for any reason. Move-only. Not thread-safe.
class Process {
 public:
  // Starts a program. `environment`, as "NAME=value", is added to this
  // process's own.
  static absl::StatusOr<Process> Start(
      const std::string& program, const std::vector<std::string>& flags,
      const std::vector<std::string>& environment = {});

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // Returns a descriptor that is readable when there is output, or its end; for
  // poll(). The object owns it.
  int output() const { return output_; }

  // Reads what is there; blocks if there is nothing. Returns false at the end.
  bool ReadSome();

  // Returns the next whole line that has been read, without its end, if there
  // is one.
  absl::optional<std::string> NextLine();

  // Writes `line` and an end of line to its standard input. Returns UNAVAILABLE
  // if the program no longer reads.
  absl::Status Tell(const std::string& line);

  // Sends SIGTERM. The program may still do what it does then.
  void Terminate();

  // Blocks until the program has ended. Returns INTERNAL unless it exited with
  // 0.
  absl::Status Wait();

 private:
  Process(std::string name, pid_t pid, int output, int input)
      : name_(std::move(name)), pid_(pid), output_(output), input_(input) {}
  void Kill();

  std::string name_;
  pid_t pid_ = -1;  // -1: reaped, or moved from
  int output_ = -1;
  int input_ = -1;
  std::string pending_;  // read, and not yet returned
};

}  // namespace penstock::examples

#endif  // PENSTOCK_EXAMPLES_COMMON_PROCESS_H_
