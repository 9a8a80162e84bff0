#include "examples/common/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::examples {
namespace {

std::string OwnFolder() {
  char path[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  if (length <= 0) return ".";
  std::string program(path, length);
  return program.substr(0, program.rfind('/'));
}

// Returns true if `environment` has an entry for the same variable as `entry`.
bool IsGiven(absl::string_view entry,
             const std::vector<std::string>& environment) {
  absl::string_view name = entry.substr(0, entry.find('=') + 1);
  for (const std::string& given : environment) {
    if (absl::StartsWith(given, name)) return true;
  }
  return false;
}

// The arguments of exec. Made before fork, because the child must not allocate.
class Arguments {
 public:
  Arguments(const std::string& program, const std::vector<std::string>& flags,
            const std::vector<std::string>& environment) {
    argv_.push_back(const_cast<char*>(program.c_str()));
    for (const std::string& flag : flags) {
      argv_.push_back(const_cast<char*>(flag.c_str()));
    }
    argv_.push_back(nullptr);
    for (const std::string& entry : environment) {
      environment_.push_back(const_cast<char*>(entry.c_str()));
    }
    // Add the entries of `environ` whose variables are not given. Each name
    // occurs once, because programs disagree about the meaning of a repeated
    // name.
    for (char** own = environ; *own != nullptr; ++own) {
      if (!IsGiven(*own, environment)) environment_.push_back(*own);
    }
    environment_.push_back(nullptr);
  }

  void Exec() const { execve(argv_[0], argv_.data(), environment_.data()); }

 private:
  std::vector<char*> argv_;
  std::vector<char*> environment_;
};

// Turns the child into the program, between fork and exec. Calls only
// async-signal-safe functions.
[[noreturn]] void Become(pid_t parent, int output, int input,
                         const Arguments& arguments) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(127);  // the parent died before prctl()
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  dup2(output, STDOUT_FILENO);
  dup2(input, STDIN_FILENO);
  arguments.Exec();
  _exit(127);
}

// Two file descriptors, which the destructor closes.
struct Pair {
  int ends[2] = {-1, -1};
  ~Pair() {
    for (int end : ends) {
      if (end >= 0) close(end);
    }
  }
  int Release(int side) { return std::exchange(ends[side], -1); }
};

}  // namespace

absl::StatusOr<std::string> FindProgram(const std::string& name,
                                        const std::string& elsewhere) {
  std::string beside = absl::StrCat(OwnFolder(), "/", name);
  if (access(beside.c_str(), X_OK) == 0) return beside;
  std::string other = absl::StrCat(OwnFolder(), "/", elsewhere);
  if (access(other.c_str(), X_OK) == 0) return other;
  return absl::NotFoundError(
      absl::StrCat("no program at ", beside, " nor at ", other,
                   "; `bazel run` builds it with this one"));
}

absl::StatusOr<Process> Process::Start(
    const std::string& program, const std::vector<std::string>& flags,
    const std::vector<std::string>& environment) {
  Pair output;
  Pair input;
  // Make a pipe for the output and a socket for the input. Writing to a socket
  // can avoid SIGPIPE if the reader has died.
  if (pipe2(output.ends, O_CLOEXEC) != 0 ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, input.ends) != 0) {
    return absl::InternalError(
        absl::StrCat("start ", program, ": ", strerror(errno)));
  }
  Arguments arguments(program, flags, environment);
  pid_t parent = getpid();
  pid_t pid = fork();
  if (pid == 0) Become(parent, output.ends[1], input.ends[1], arguments);
  if (pid < 0) {
    return absl::InternalError(absl::StrCat("fork: ", strerror(errno)));
  }
  return Process(program.substr(program.rfind('/') + 1), pid, output.Release(0),
                 input.Release(0));
}

Process::Process(Process&& other) noexcept
    : name_(std::move(other.name_)),
      pid_(std::exchange(other.pid_, -1)),
      output_(std::exchange(other.output_, -1)),
      input_(std::exchange(other.input_, -1)),
      pending_(std::move(other.pending_)) {}

Process& Process::operator=(Process&& other) noexcept {
  if (this == &other) return *this;
  Kill();
  name_ = std::move(other.name_);
  pid_ = std::exchange(other.pid_, -1);
  output_ = std::exchange(other.output_, -1);
  input_ = std::exchange(other.input_, -1);
  pending_ = std::move(other.pending_);
  return *this;
}

Process::~Process() { Kill(); }

void Process::Kill() {
  if (output_ >= 0) close(std::exchange(output_, -1));
  if (input_ >= 0) close(std::exchange(input_, -1));
  if (pid_ < 0) return;
  kill(pid_, SIGKILL);
  waitpid(std::exchange(pid_, -1), nullptr, 0);
}

bool Process::ReadSome() {
  char bytes[4096];
  ssize_t count;
  do {
    count = read(output_, bytes, sizeof(bytes));
  } while (count < 0 && errno == EINTR);
  if (count <= 0) return false;
  pending_.append(bytes, count);
  return true;
}

absl::optional<std::string> Process::NextLine() {
  size_t end = pending_.find('\n');
  if (end == std::string::npos) return absl::nullopt;
  std::string line = pending_.substr(0, end);
  pending_.erase(0, end + 1);
  return line;
}

absl::Status Process::Tell(const std::string& line) {
  std::string bytes = line + "\n";
  // Send the whole line in one call. Lines are few and short, so they fit into
  // the socket's buffer.
  ssize_t sent = send(input_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
  if (sent == static_cast<ssize_t>(bytes.size())) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat("tell ", name_, ": ", strerror(errno)));
}

void Process::Terminate() {
  if (pid_ >= 0) kill(pid_, SIGTERM);
}

absl::Status Process::Wait() {
  if (pid_ < 0) return absl::OkStatus();
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return absl::OkStatus();
  return absl::InternalError(
      WIFSIGNALED(status)
          ? absl::StrCat(name_, " was killed by signal ", WTERMSIG(status))
          : absl::StrCat(name_, " exited with ", WEXITSTATUS(status)));
}

}  // namespace penstock::examples
