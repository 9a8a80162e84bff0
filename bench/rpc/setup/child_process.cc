#include "bench/rpc/setup/child_process.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"

namespace penstock {
namespace bench {
namespace {

// Limits the milliseconds that a child takes to end. A server needs
// milliseconds, or a second under callgrind.
constexpr int kEndTimeoutMs = 10000;

absl::Status SystemError(absl::string_view operation, int error) {
  return absl::InternalError(absl::StrCat(operation, ": ", strerror(error)));
}

// Waits until `fd` has data or is closed. Returns false after the timeout.
bool WaitReadable(int fd, int timeout_ms) {
  pollfd entry = {fd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&entry, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Returns a path of this program's file, for starting another process. Uses the
// link's target under valgrind, where the link is valgrind itself. Uses the
// link if a build has replaced the file.
std::string OwnProgram() {
  constexpr char kLink[] = "/proc/self/exe";
  char target[PATH_MAX];
  const ssize_t size = readlink(kLink, target, sizeof(target));
  if (size <= 0 || size == sizeof(target)) return kLink;
  const std::string path(target, size);
  return access(path.c_str(), X_OK) == 0 ? path : kLink;
}

// Starts this program with `flags`, and with `input` as standard input. Does
// not use fork(), because gRPC's threads may hold locks.
absl::StatusOr<pid_t> Spawn(std::vector<std::string> flags, int input) {
  flags.insert(flags.begin(), "rpc");
  std::vector<char*> arguments;
  for (std::string& flag : flags) arguments.push_back(&flag[0]);
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, OwnProgram().c_str(), &actions, nullptr,
                                arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return SystemError("start a child process", error);
  return pid;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ChildProcess>> ChildProcess::Start(
    std::vector<std::string> flags) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return SystemError("socketpair", errno);
  }
  const absl::StatusOr<pid_t> pid = Spawn(std::move(flags), sockets[1]);
  close(sockets[1]);
  if (!pid.ok()) {
    close(sockets[0]);
    return pid.status();
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(*pid, sockets[0]));
}

absl::StatusOr<std::string> ChildProcess::ReadLine(int timeout_ms) {
  size_t end;
  while ((end = received_.find('\n')) == std::string::npos) {
    if (!WaitReadable(socket_, timeout_ms)) {
      return absl::DeadlineExceededError("a child process does not answer");
    }
    char buffer[512];
    const ssize_t size = read(socket_, buffer, sizeof(buffer));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return absl::AbortedError("a child process ended early");
    received_.append(buffer, size);
  }
  std::string line = received_.substr(0, end);
  received_.erase(0, end + 1);
  return line;
}

void ChildProcess::Go() {
  // Ignores a failed write. The child has then ended, and ReadLine() reports
  // this.
  if (send(socket_, "g", 1, MSG_NOSIGNAL) < 0) return;
}

ChildProcess::~ChildProcess() {
  shutdown(socket_, SHUT_WR);
  // Skip unread lines until the socket closes, which happens when the child
  // ends.
  absl::StatusOr<std::string> line;
  do {
    line = ReadLine(kEndTimeoutMs);
  } while (line.ok());
  if (absl::IsDeadlineExceeded(line.status())) kill(pid_, SIGKILL);
  close(socket_);
  int status;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

void BecomeChild() {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  grpc_init();
}

void SendLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  text += '\n';
  // Ignores a short or failed write, because the parent has then ended.
  if (send(STDIN_FILENO, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
}

void AwaitParent() {
  char byte;
  ssize_t size;
  do {
    size = read(STDIN_FILENO, &byte, 1);
  } while (size > 0 || (size < 0 && errno == EINTR));
}

bool AwaitGo() {
  constexpr int kSecondMs = 1000;
  if (!WaitReadable(STDIN_FILENO, kSecondMs)) return false;
  char byte;
  const ssize_t size = read(STDIN_FILENO, &byte, 1);
  if (size == 0) LeaveChild(1);
  return size > 0;
}

void LeaveChild(int code) { _exit(code); }

}  // namespace bench
}  // namespace penstock
