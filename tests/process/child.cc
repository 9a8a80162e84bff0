#include "tests/process/child.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::process {
namespace {

constexpr int kPatienceMs = 10000;

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> result;
  for (std::string& text : *texts) result.push_back(&text[0]);
  result.push_back(nullptr);
  return result;
}

// Takes PENSTOCK_* settings only from the test, and none from the user's
// environment.
std::vector<std::string> Environment(std::vector<std::string> given) {
  for (char** own = environ; *own != nullptr; ++own) {
    if (!absl::StartsWith(*own, "PENSTOCK_")) given.push_back(*own);
  }
  return given;
}

// Starts a command by posix_spawn, which runs no fork handlers of libraries.
pid_t Spawn(std::vector<std::string> command,
            std::vector<std::string> environment, int standard, int log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    posix_spawn_file_actions_adddup2(&actions, standard, fd);
  }
  posix_spawn_file_actions_adddup2(&actions, log < 0 ? standard : log,
                                   STDERR_FILENO);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, command[0].c_str(), &actions, nullptr,
                   Pointers(&command).data(), Pointers(&environment).data());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

}  // namespace

std::unique_ptr<Child> Child::Start(std::vector<std::string> command,
                                    const std::vector<std::string>& environment,
                                    int log) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return nullptr;
  }
  const pid_t pid =
      Spawn(std::move(command), Environment(environment), ends[1], log);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    return nullptr;
  }
  return std::unique_ptr<Child>(new Child(pid, ends[0]));
}

Child::~Child() {
  Kill();
  close(socket_);
}

absl::optional<std::string> Child::Find(absl::string_view prefix) {
  while (true) {
    const size_t end = received_.find('\n');
    if (end != std::string::npos) {
      const std::string line = received_.substr(0, end);
      received_.erase(0, end + 1);
      if (absl::StartsWith(line, prefix)) return line.substr(prefix.size());
    } else if (!ReadSome()) {
      return absl::nullopt;
    }
  }
}

void Child::Tell(absl::string_view text) {
  (void)!send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
}

std::string Child::ReadAll() {
  shutdown(socket_, SHUT_WR);
  while (ReadSome()) {
  }
  return std::move(received_);
}

bool Child::ReadSome() {
  pollfd wanted = {socket_, POLLIN, 0};
  if (poll(&wanted, 1, kPatienceMs) <= 0) return false;
  char bytes[4096];
  const ssize_t count = recv(socket_, bytes, sizeof(bytes), 0);
  if (count <= 0) return false;
  received_.append(bytes, count);
  return true;
}

void Child::Kill() {
  if (!IsAlive()) return;
  kill(pid_, SIGKILL);
  Wait(0);
}

void Child::Suspend() {
  if (!IsAlive()) return;
  kill(pid_, SIGSTOP);
  Wait(WUNTRACED);
}

void Child::Resume() {
  if (IsAlive()) kill(pid_, SIGCONT);
}

int Child::Finish() {
  ReadAll();
  if (!status_.has_value()) Wait(0);
  return WIFEXITED(*status_) ? WEXITSTATUS(*status_) : -1;
}

bool Child::IsAlive() {
  if (!status_.has_value()) Wait(WNOHANG);
  return !status_.has_value();
}

std::string Child::Fate() {
  if (IsAlive()) return "alive";
  if (WIFSIGNALED(*status_)) return absl::StrCat("signal ", WTERMSIG(*status_));
  return absl::StrCat("exit code ", WEXITSTATUS(*status_));
}

void Child::Wait(int options) {
  int status = 0;
  pid_t reaped;
  do {
    reaped = waitpid(pid_, &status, options);
  } while (reaped < 0 && errno == EINTR);
  if (reaped == pid_ && !WIFSTOPPED(status)) status_ = status;
}

}  // namespace penstock::process
