#include "tests/process/system_calls.h"

#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <string>

#include "absl/strings/str_cat.h"

namespace penstock::process {
namespace {

enum State { kBegins, kTraces, kFailed };

constexpr int kOptions = PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE;

std::vector<pid_t> ThreadsOf(pid_t pid) {
  std::vector<pid_t> threads;
  DIR* const directory = opendir(absl::StrCat("/proc/", pid, "/task").c_str());
  if (directory == nullptr) return threads;
  while (const dirent* entry = readdir(directory)) {
    const pid_t thread = std::atoi(entry->d_name);
    if (thread > 0) threads.push_back(thread);
  }
  closedir(directory);
  return threads;
}

// Interrupts the tracing thread's wait.
void OnInterrupt(int) {}

}  // namespace

std::unique_ptr<SystemCalls> SystemCalls::Trace(
    const std::vector<pid_t>& pids) {
  std::unique_ptr<SystemCalls> calls(new SystemCalls(pids));
  while (calls->state_ == kBegins) std::this_thread::yield();
  if (calls->state_ == kFailed) return nullptr;
  return calls;
}

SystemCalls::SystemCalls(const std::vector<pid_t>& pids) {
  struct sigaction action = {};
  action.sa_handler = &OnInterrupt;
  sigaction(SIGUSR2, &action, nullptr);
  thread_ = std::thread([this, pids] { Run(pids); });
}

// Ends the tracing thread. The kernel then detaches all its traced threads.
SystemCalls::~SystemCalls() {
  stops_ = true;
  std::atomic<bool> ended{false};
  std::thread interrupter([&] {
    while (!ended) {
      pthread_kill(thread_.native_handle(), SIGUSR2);
      std::this_thread::yield();
    }
  });
  while (state_ != kFailed) std::this_thread::yield();
  ended = true;
  interrupter.join();
  thread_.join();
}

int64_t SystemCalls::Count(pid_t pid, int64_t number) const {
  const std::lock_guard<std::mutex> lock(mu_);
  const auto counts = counts_.find(pid);
  if (counts == counts_.end()) return 0;
  const auto calls = counts->second.calls.find(number);
  return calls == counts->second.calls.end() ? 0 : calls->second;
}

int64_t SystemCalls::CountZeroWrites(pid_t pid) const {
  const std::lock_guard<std::mutex> lock(mu_);
  const auto counts = counts_.find(pid);
  return counts == counts_.end() ? 0 : counts->second.zero_writes;
}

// Attaches to all threads of the process, including threads that start during
// this call.
bool SystemCalls::Seize(pid_t pid) {
  for (bool any = true; any;) {
    any = false;
    for (const pid_t thread : ThreadsOf(pid)) {
      if (process_of_.count(thread) > 0) continue;
      if (ptrace(PTRACE_SEIZE, thread, nullptr, kOptions) != 0) {
        if (errno == ESRCH) continue;  // the thread has ended
        return false;
      }
      process_of_[thread] = pid;
      ptrace(PTRACE_INTERRUPT, thread, nullptr, nullptr);
      any = true;
    }
  }
  return !ThreadsOf(pid).empty();
}

void SystemCalls::Note(pid_t thread) {
  __ptrace_syscall_info info = {};
  if (ptrace(PTRACE_GET_SYSCALL_INFO, thread, sizeof info, &info) <= 0 ||
      info.op != PTRACE_SYSCALL_INFO_ENTRY) {
    return;
  }
  const auto number = static_cast<int64_t>(info.entry.nr);
  bool is_zero = false;
  if (number == SYS_write && info.entry.args[2] == sizeof(uint64_t)) {
    errno = 0;
    is_zero = ptrace(PTRACE_PEEKDATA, thread, info.entry.args[1], nullptr) == 0;
    is_zero = is_zero && errno == 0;
  }
  const std::lock_guard<std::mutex> lock(mu_);
  Counts* const counts = &counts_[process_of_[thread]];
  ++counts->calls[number];
  counts->zero_writes += is_zero;
}

void SystemCalls::Run(const std::vector<pid_t>& pids) {
  bool traces = true;
  for (const pid_t pid : pids) traces = traces && Seize(pid);
  if (traces) state_ = kTraces;
  while (traces && !stops_) {
    int status = 0;
    // Waits only for threads that this thread traces, and not for other
    // children of this process.
    const pid_t thread = waitpid(-1, &status, __WALL | __WNOTHREAD);
    if (thread < 0) {
      if (errno == EINTR) continue;
      break;
    }
    if (!WIFSTOPPED(status)) continue;
    int signal = WSTOPSIG(status);
    const int event = status >> 16;
    if (signal == (SIGTRAP | 0x80)) {
      Note(thread);
      signal = 0;
    } else if (event == PTRACE_EVENT_CLONE) {
      unsigned long added = 0;
      ptrace(PTRACE_GETEVENTMSG, thread, nullptr, &added);
      process_of_[static_cast<pid_t>(added)] = process_of_[thread];
    }
    if (event != 0) signal = 0;
    ptrace(PTRACE_SYSCALL, thread, nullptr, signal);
  }
  state_ = kFailed;
}

}  // namespace penstock::process
