// Counts the system calls of another process, by ptrace.

#ifndef PENSTOCK_TESTS_PROCESS_SYSTEM_CALLS_H_
#define PENSTOCK_TESTS_PROCESS_SYSTEM_CALLS_H_

#include <sys/types.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace penstock::process {

// Traces all threads of some processes while this object lives. The processes
// must be children of this one. Tracing slows them down.
class SystemCalls {
 public:
  // Returns null if the system does not let this process trace.
  static std::unique_ptr<SystemCalls> Trace(const std::vector<pid_t>& pids);
  ~SystemCalls();
  SystemCalls(const SystemCalls&) = delete;
  SystemCalls& operator=(const SystemCalls&) = delete;

  // Returns how often the process has made the system call `number`, such as
  // SYS_write. Includes a call in progress.
  int64_t Count(pid_t pid, int64_t number) const;
  // Returns the number of write() calls whose data are eight zero bytes.
  int64_t CountZeroWrites(pid_t pid) const;

 private:
  struct Counts {
    std::map<int64_t, int64_t> calls;
    int64_t zero_writes = 0;
  };

  explicit SystemCalls(const std::vector<pid_t>& pids);
  void Run(const std::vector<pid_t>& pids);
  bool Seize(pid_t pid);
  void Note(pid_t thread);

  std::atomic<int> state_{0};
  std::atomic<bool> stops_{false};
  mutable std::mutex mu_;
  std::map<pid_t, Counts> counts_;
  std::map<pid_t, pid_t> process_of_;  // used by the tracing thread
  std::thread thread_;                 // starts last
};

}  // namespace penstock::process

#endif  // PENSTOCK_TESTS_PROCESS_SYSTEM_CALLS_H_
