// A process that a test starts.

#ifndef PENSTOCK_TESTS_PROCESS_CHILD_H_
#define PENSTOCK_TESTS_PROCESS_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::process {

// A child process. Its standard input is ours to write, and its output ours to
// read. It is killed and reaped with the object. Not thread-safe.
class Child {
 public:
  // Starts a process. `environment`, as "NAME=value", is added to this
  // process's own, without any PENSTOCK_*. Its log, stderr, goes to the
  // descriptor `log`, or to its output if that is -1. Returns null if it cannot
  // be started.
  static std::unique_ptr<Child> Start(
      std::vector<std::string> command,
      const std::vector<std::string>& environment = {}, int log = -1);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Returns what follows `prefix` in the next line that begins with it. Returns
  // nothing if the output ends first, or if nothing comes for ten seconds.
  absl::optional<std::string> Find(absl::string_view prefix);

  // Writes to its input.
  void Tell(absl::string_view text);

  // Returns all output up to its end; an empty string if that does not come in
  // ten seconds.
  std::string ReadAll();

  // Sends SIGKILL, and returns when the process has ended.
  void Kill();
  // Sends SIGSTOP. When this returns the process does nothing, and keeps what
  // it has.
  void Suspend();
  // Sends SIGCONT.
  void Resume();

  // Closes its input, which tells it to end. Returns its exit code, or -1 if a
  // signal has ended it.
  int Finish();

  bool IsAlive();
  // Returns what became of it: "alive", "signal 11", "exit code 1".
  std::string Fate();
  pid_t pid() const { return pid_; }

 private:
  Child(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  // Returns false at the end, or after ten seconds.
  bool ReadSome();
  // Waits, with the options of waitpid(), and keeps the status of its end.
  void Wait(int options);

  const pid_t pid_;
  const int socket_;
  absl::optional<int> status_;  // once reaped
  std::string received_;        // not yet returned
};

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_CHILD_H_
