#include "tests/adversary/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::adversary {
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

pid_t Spawn(std::vector<std::string> command,
            std::vector<std::string> environment, int socket, int log) {
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, socket, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, socket, STDOUT_FILENO);
  posix_spawn_file_actions_adddup2(&actions, log, STDERR_FILENO);
  pid_t pid = -1;
  const int error =
      posix_spawnp(&pid, command[0].c_str(), &actions, nullptr,
                   Pointers(&command).data(), Pointers(&environment).data());
  posix_spawn_file_actions_destroy(&actions);
  return error == 0 ? pid : -1;
}

std::string Text(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::unique_ptr<Process> Process::Start(
    std::vector<std::string> command,
    const std::vector<std::string>& environment) {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return nullptr;
  }
  const int log = memfd_create("log of a victim", MFD_CLOEXEC);
  const pid_t pid =
      Spawn(std::move(command), Environment(environment), ends[1], log);
  close(ends[1]);
  if (pid < 0) {
    close(ends[0]);
    close(log);
    return nullptr;
  }
  return std::unique_ptr<Process>(new Process(pid, ends[0], log));
}

Process::~Process() {
  if (IsAlive()) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  close(socket_);
  close(log_);
}

absl::optional<std::string> Process::Find(absl::string_view prefix) {
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

void Process::Tell(absl::string_view text) {
  (void)!send(socket_, text.data(), text.size(), MSG_NOSIGNAL);
}

bool Process::ReadSome() {
  pollfd wanted = {socket_, POLLIN, 0};
  if (poll(&wanted, 1, kPatienceMs) <= 0) return false;
  char bytes[4096];
  const ssize_t count = recv(socket_, bytes, sizeof(bytes), 0);
  if (count <= 0) return false;
  received_.append(bytes, count);
  return true;
}

void Process::Suspend() {
  kill(pid_, SIGSTOP);
  int status = 0;
  while (waitpid(pid_, &status, WUNTRACED) < 0 && errno == EINTR) {
  }
}

void Process::Resume() { kill(pid_, SIGCONT); }

bool Process::IsAlive() {
  if (status_.has_value()) return false;
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) == pid_) status_ = status;
  return !status_.has_value();
}

std::string Process::Fate() {
  if (IsAlive()) return "alive";
  if (WIFSIGNALED(*status_)) return absl::StrCat("signal ", WTERMSIG(*status_));
  return absl::StrCat("exit code ", WEXITSTATUS(*status_));
}

uint64_t Process::StatusBytes(absl::string_view field) const {
  std::istringstream lines(Text(absl::StrCat("/proc/", pid_, "/status")));
  std::string name;
  uint64_t kib;
  for (std::string line; std::getline(lines, line);) {
    if (!absl::StartsWith(line, field)) continue;
    if (std::istringstream(line) >> name >> kib) return kib * 1024;
  }
  return 0;
}

uint64_t Process::ResidentBytes() const { return StatusBytes("VmRSS:"); }

uint64_t Process::PeakBytes() const { return StatusBytes("VmHWM:"); }

void Process::ForgetPeak() {
  std::ofstream(absl::StrCat("/proc/", pid_, "/clear_refs")) << "5";
}

double Process::CpuSeconds() const {
  const std::string text = Text(absl::StrCat("/proc/", pid_, "/stat"));
  // Behind the name, which may have blanks: 11 fields, then user and system.
  const size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(text.substr(name_end + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
}

int Process::Descriptors() const {
  int count = 0;
  DIR* const folder = opendir(absl::StrCat("/proc/", pid_, "/fd").c_str());
  if (folder == nullptr) return 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

uint64_t Process::LogBytes() const {
  struct stat status;
  return fstat(log_, &status) == 0 ? status.st_size : 0;
}

std::string Process::Log(uint64_t from) const {
  std::string text(LogBytes() - from, '\0');
  const ssize_t size = pread(log_, &text[0], text.size(), from);
  text.resize(size < 0 ? 0 : size);
  return text;
}

}  // namespace penstock::adversary
