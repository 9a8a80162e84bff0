#include "tests/e2e/child.h"

#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/match.h"

namespace penstock::e2e {
namespace {

constexpr int kPatienceMs = 10000;

std::vector<char*> Pointers(std::vector<std::string>* texts) {
  std::vector<char*> result;
  for (std::string& text : *texts) result.push_back(&text[0]);
  result.push_back(nullptr);
  return result;
}

// Settings come only from the test, not from whoever runs it.
std::vector<std::string> Environment(std::vector<std::string> given) {
  for (char** own = environ; *own != nullptr; ++own) {
    if (!absl::StartsWith(*own, "PENSTOCK_")) given.push_back(*own);
  }
  return given;
}

// posix_spawn and not fork: no handler of a library runs in the child.
pid_t Spawn(std::vector<std::string> command,
            std::vector<std::string> environment, int standard) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    posix_spawn_file_actions_adddup2(&actions, standard, fd);
  }
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, command[0].c_str(), &actions, nullptr,
                   Pointers(&command).data(), Pointers(&environment).data());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

}  // namespace

std::unique_ptr<Child> Child::Start(
    std::vector<std::string> command,
    const std::vector<std::string>& environment) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return nullptr;
  }
  const pid_t pid =
      Spawn(std::move(command), Environment(environment), ends[1]);
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
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  Reap();
}

void Child::Suspend() {
  kill(pid_, SIGSTOP);
  int status = 0;
  while (waitpid(pid_, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
}

void Child::Resume() { kill(pid_, SIGCONT); }

int Child::Finish() {
  ReadAll();
  return Reap();
}

int Child::Reap() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

std::unique_ptr<Child> StartPeer(const std::string& role,
                                 const std::vector<std::string>& flags,
                                 const std::vector<std::string>& environment) {
  std::vector<std::string> command = {"tests/e2e/peer", role};
  command.insert(command.end(), flags.begin(), flags.end());
  return Child::Start(std::move(command), environment);
}

}  // namespace penstock::e2e
