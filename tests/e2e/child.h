// A process that a test starts: the program "peer" of this folder.

#ifndef PENSTOCK_TESTS_E2E_CHILD_H_
#define PENSTOCK_TESTS_E2E_CHILD_H_

#include <sys/types.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::e2e {

// Its standard input is ours to write and its output ours to read, with its
// log among it. Killed and reaped with the object. Not thread-safe.
class Child {
 public:
  // `environment`, as "NAME=value", comes on top of this process's own, less
  // any PENSTOCK_*. Null if it cannot be started.
  static std::unique_ptr<Child> Start(
      std::vector<std::string> command,
      const std::vector<std::string>& environment = {});
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  // What follows `prefix` in the next line that begins with it. Nothing when
  // the output ends, or stays away for ten seconds, before such a line comes.
  absl::optional<std::string> Find(absl::string_view prefix);

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

 private:
  Child(pid_t pid, int socket) : pid_(pid), socket_(socket) {}
  // False at the end, or after ten seconds.
  bool ReadSome();
  int Reap();

  pid_t pid_;  // -1: reaped
  const int socket_;
  std::string received_;  // not yet given out
};

// Runs "peer" in `role` with `flags`.
std::unique_ptr<Child> StartPeer(
    const std::string& role, const std::vector<std::string>& flags,
    const std::vector<std::string>& environment = {});

}  // namespace penstock::e2e

#endif  // PENSTOCK_TESTS_E2E_CHILD_H_
