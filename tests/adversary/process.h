// A victim's process: started, told, measured, and put an end to.

#ifndef PENSTOCK_TESTS_ADVERSARY_PROCESS_H_
#define PENSTOCK_TESTS_ADVERSARY_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::adversary {

// Killed and reaped with the object. Its log, stderr, has a file of its own:
// however much it writes, it is never held up. Not thread-safe.
class Process {
 public:
  // `environment`, as "NAME=value", comes on top of this process's own, less
  // any PENSTOCK_*. Null if it cannot be started.
  static std::unique_ptr<Process> Start(
      std::vector<std::string> command,
      const std::vector<std::string>& environment = {});
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  // What follows `prefix` in the next line of its output that begins with it;
  // nothing where none comes within ten seconds, or before the end.
  absl::optional<std::string> Find(absl::string_view prefix);
  // Into its input.
  void Tell(absl::string_view text);

  // From when Suspend() returns it does nothing, until Resume().
  void Suspend();
  void Resume();

  bool IsAlive();
  // What became of it: "alive", "signal 11", "exit code 1".
  std::string Fate();

  uint64_t ResidentBytes() const;
  // The most since ForgetPeak(), or since the start where the kernel does not
  // let it be forgotten.
  uint64_t PeakBytes() const;
  void ForgetPeak();
  double CpuSeconds() const;
  int Descriptors() const;
  uint64_t LogBytes() const;
  std::string Log(uint64_t from) const;

 private:
  Process(pid_t pid, int socket, int log)
      : pid_(pid), socket_(socket), log_(log) {}
  bool ReadSome();
  // Of /proc/PID/status, in bytes.
  uint64_t StatusBytes(absl::string_view field) const;

  const pid_t pid_;
  const int socket_;
  const int log_;
  absl::optional<int> status_;  // of the reaped process
  std::string received_;
};

}  // namespace penstock::adversary

#endif  // PENSTOCK_TESTS_ADVERSARY_PROCESS_H_
