// Child processes of the demo.

#ifndef PENSTOCK_EXAMPLES_DIGITS_PROCESS_H_
#define PENSTOCK_EXAMPLES_DIGITS_PROCESS_H_

#include <sys/types.h>

#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"

namespace penstock::digits {

// The program called `name` next to this one, or else at `elsewhere`, a path
// relative to this one's folder. NOT_FOUND names both.
absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& elsewhere);

// A running program whose standard output we read and whose standard input we
// write; move-only. It gets SIGKILL
// when this process dies, whatever of, and when the object goes. Not
// thread-safe.
class Process {
 public:
  // `environment`, as "NAME=value", comes on top of this process's own.
  static absl::StatusOr<Process> Start(
      const std::string& program, const std::vector<std::string>& flags,
      const std::vector<std::string>& environment = {});

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  ~Process();

  // Readable when there is output or its end; for poll().
  int output() const { return output_; }

  // Reads what is there, blocking if nothing is; false at the end.
  bool ReadSome();

  // The next whole line that has been read, without its end.
  absl::optional<std::string> NextLine();

  // Writes `line` and an end of line to its standard input. UNAVAILABLE where
  // it no longer reads.
  absl::Status Tell(const std::string& line);

  // SIGTERM; the program may still do what it does then.
  void Terminate();

  // Blocks until the program has ended. INTERNAL unless it exited with 0.
  absl::Status Wait();

 private:
  Process(std::string name, pid_t pid, int output, int input)
      : name_(std::move(name)), pid_(pid), output_(output), input_(input) {}
  void Kill();

  std::string name_;
  pid_t pid_ = -1;  // -1: reaped, or moved from
  int output_ = -1;
  int input_ = -1;
  std::string pending_;  // read, not yet given out
};

}  // namespace penstock::digits

#endif  // PENSTOCK_EXAMPLES_DIGITS_PROCESS_H_
