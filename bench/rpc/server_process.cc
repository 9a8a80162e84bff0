#include "bench/rpc/server_process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "bench/rpc/options.h"
#include "bench/rpc/server.h"

namespace penstock {
namespace bench {
namespace {

// A cold start takes some 30 ms; ten seconds is a machine that swaps.
constexpr int kStartTimeoutMs = 10000;
constexpr int kEndTimeoutMs = 2000;
// The line of a child that cannot serve begins with this.
constexpr absl::string_view kErrorPrefix = "error: ";

absl::Status SystemError(absl::string_view operation, int error) {
  return absl::InternalError(absl::StrCat(operation, ": ", strerror(error)));
}

// False after the time limit.
bool WaitReadable(int fd, int timeout_ms) {
  pollfd entry = {fd, POLLIN, 0};
  int ready;
  do {
    ready = poll(&entry, 1, timeout_ms);
  } while (ready < 0 && errno == EINTR);
  return ready > 0;
}

// Starts this program with `flags`, with `input` as its standard input. Not
// fork(): gRPC's threads hold locks, and its fork handlers are none of this.
absl::StatusOr<pid_t> Spawn(std::vector<std::string> flags, int input) {
  flags.insert(flags.begin(), "rpc");
  std::vector<char*> arguments;
  for (std::string& flag : flags) arguments.push_back(&flag[0]);
  arguments.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  pid_t pid = -1;
  const int error = posix_spawn(&pid, "/proc/self/exe", &actions, nullptr,
                                arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) return SystemError("start the server process", error);
  return pid;
}

void WriteLine(const std::string& line) {
  const std::string text = line + "\n";
  // A short or failed write means that the parent is gone.
  if (send(STDIN_FILENO, text.data(), text.size(), MSG_NOSIGNAL) < 0) return;
}

}  // namespace

absl::StatusOr<std::unique_ptr<ServerProcess>> ServerProcess::Start(
    Transport transport, Api api, int threads) {
  int sockets[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
    return SystemError("socketpair", errno);
  }
  const absl::StatusOr<pid_t> pid =
      Spawn(ServerFlags(transport, api, threads), sockets[1]);
  close(sockets[1]);
  if (!pid.ok()) {
    close(sockets[0]);
    return pid.status();
  }
  std::unique_ptr<ServerProcess> process(new ServerProcess(*pid, sockets[0]));
  const absl::Status status = process->ReadAddress();
  if (!status.ok()) return status;
  return process;
}

absl::Status ServerProcess::ReadAddress() {
  std::string line;
  while (line.empty() || line.back() != '\n') {
    if (!WaitReadable(socket_, kStartTimeoutMs)) {
      return absl::UnavailableError("the server process does not start");
    }
    char buffer[256];
    const ssize_t size = read(socket_, buffer, sizeof(buffer));
    if (size <= 0) {
      return absl::UnavailableError("the server process died at its start");
    }
    line.append(buffer, size);
  }
  line.pop_back();
  absl::string_view text = line;
  if (absl::ConsumePrefix(&text, kErrorPrefix)) {
    return absl::UnavailableError(text);
  }
  address_ = line;
  return absl::OkStatus();
}

ServerProcess::~ServerProcess() {
  close(socket_);
  // Debian 12's <sys/pidfd.h> lacks extern "C".
  const int pidfd = static_cast<int>(syscall(SYS_pidfd_open, pid_, 0));
  if (pidfd < 0 || !WaitReadable(pidfd, kEndTimeoutMs)) kill(pid_, SIGKILL);
  if (pidfd >= 0) close(pidfd);
  int status;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
}

int RunServerRole(Transport transport, Api api, int threads) {
  // For a server that hangs so that it does not see the end of file below.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  const absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(transport, api, threads);
  if (!server.ok()) {
    WriteLine(absl::StrCat(kErrorPrefix, server.status().message()));
    return 1;
  }
  WriteLine((*server)->address());
  char byte;
  ssize_t size;
  do {
    size = read(STDIN_FILENO, &byte, 1);
  } while (size > 0 || (size < 0 && errno == EINTR));
  return 0;
}

}  // namespace bench
}  // namespace penstock
