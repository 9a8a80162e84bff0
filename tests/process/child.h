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

// Its standard input is ours to write and its output ours to read. Killed and
// reaped with the object. Not thread-safe.
class Child {
 public:
  // `environment`, as "NAME=value", comes on top of this process's own, less
  // any PENSTOCK_*. Its log, stderr, goes to the descriptor `log`, or among its
  // output. Null if it cannot be started.
  static std::unique_ptr<Child> Start(
      std::vector<std::string> command,
      const std::vector<std::string>& environment = {}, int log = -1);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // What follows `prefix` in the next line that begins with it. Nothing when
  // the output ends, or stays away for ten seconds, before such a line comes.
  absl::optional<std::string> Find(absl::string_view prefix);

  // Into its input.
  void Tell(absl::string_view text);

  // All output up to its end; empty where that does not come in ten seconds.
  std::string ReadAll();

  // SIGKILL. It has ended when this returns.
  void Kill();
  // SIGSTOP: from when this returns it does nothing, and keeps what it has.
  void Suspend();
  // SIGCONT.
  void Resume();

  // Tells it to end, by the end of its input; its exit code, -1 for a signal.
  int Finish();

  bool IsAlive();
  // What became of it: "alive", "signal 11", "exit code 1".
  std::string Fate();
  pid_t pid() const { return pid_; }

 private:
  Child(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  // False at the end, or after ten seconds.
  bool ReadSome();
  // Waits, with the options of waitpid(), and keeps the status of its end.
  void Wait(int options);

  const pid_t pid_;
  const int socket_;
  absl::optional<int> status_;  // reaped
  std::string received_;        // not yet given out
};

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_CHILD_H_
