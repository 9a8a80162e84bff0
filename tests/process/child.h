// A child process of a test.

#ifndef PENSTOCK_TESTS_PROCESS_CHILD_H_
#define PENSTOCK_TESTS_PROCESS_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::process {

// A child process. The test writes its standard input and reads its output. The
// destructor kills and reaps the process. Not thread-safe.
class Child {
 public:
  // Starts a process with this process's environment, without PENSTOCK_*
  // variables and with `environment` ("NAME=value") added. stderr goes to the
  // descriptor `log`. If `log` is -1, stderr becomes part of the process's
  // output. Returns null on failure.
  static std::unique_ptr<Child> Start(
      std::vector<std::string> command,
      const std::vector<std::string>& environment = {}, int log = -1);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // Skips lines until one begins with `prefix`, and returns the rest of that
  // line. Returns nothing if the output ends, or if no such line comes for ten
  // seconds.
  absl::optional<std::string> Find(absl::string_view prefix);

  // Writes to the process's input.
  void Tell(absl::string_view text);

  // Returns all further output. Blocks until the output ends. Returns an empty
  // string after ten seconds.
  std::string ReadAll();

  // Sends SIGKILL, and waits until the process has ended.
  void Kill();
  // Sends SIGSTOP. On return, the process is stopped and keeps its resources.
  void Suspend();
  // Sends SIGCONT.
  void Resume();

  // Closes the process's input, and waits until the process ends. Returns the
  // exit code, or -1 after a signal.
  int Finish();

  bool IsAlive();
  // Returns the state of the process: "alive", "signal 11", "exit code 1".
  std::string Fate();
  pid_t pid() const { return pid_; }

 private:
  Child(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  // Reads some output. Returns false at the end, or after ten seconds.
  bool ReadSome();
  // Calls waitpid() with `options`, and stores the exit status.
  void Wait(int options);

  const pid_t pid_;
  const int socket_;
  absl::optional<int> status_;  // once reaped
  std::string received_;        // not yet returned
};

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_CHILD_H_
