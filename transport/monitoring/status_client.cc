#include "transport/monitoring/status_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "transport/base/status_util.h"
#include "transport/base/steady_time.h"
#include "transport/base/unique_fd.h"
#include "transport/monitoring/receive_bytes.h"
#include "transport/progress/foreign_fd.h"

namespace penstock {
namespace monitoring {
namespace {

// Limits an answer. Enough for 10,000 connections, each with long reasons.
constexpr size_t kMaxAnswerBytes = 32 * 1024 * 1024;
constexpr absl::Duration kPauseWhileFull = absl::Milliseconds(5);

absl::Status TooLate() {
  return absl::DeadlineExceededError("the process did not answer in time");
}

// Returns the pid in the process's own pid namespace. This is the last number
// in the line "NSpid: 4711 1".
pid_t PidInItsNamespace(pid_t process) {
  std::ifstream status(absl::StrCat("/proc/", process, "/status"));
  for (std::string line; std::getline(status, line);) {
    pid_t pid = 0;
    if (absl::StartsWith(line, "NSpid:") &&
        absl::SimpleAtoi(line.substr(line.find_last_of(" \t") + 1), &pid)) {
      return pid;
    }
  }
  return process;  // ended, or /proc is of another namespace
}

absl::StatusOr<progress::ForeignFd> NewSocket() {
  progress::ForeignFd socket(base::UniqueFd(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)));
  if (socket.get() < 0) return base::ErrnoStatus(errno, "make a socket");
  return socket;
}

// Writes the address of an abstract name. Returns its size.
unsigned AbstractAddress(absl::string_view name, sockaddr_un* address) {
  *address = {};
  address->sun_family = AF_UNIX;
  name = name.substr(0, sizeof address->sun_path - 1);
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<unsigned>(offsetof(sockaddr_un, sun_path) + 1 +
                               name.size());
}

// Returns the owner of the listener to which `fd` is connected.
absl::StatusOr<StatusOwner> OwnerOf(int fd) {
  ucred server = {};
  socklen_t size = sizeof server;
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &server, &size) != 0) {
    return base::ErrnoStatus(errno, "SO_PEERCRED");
  }
  return StatusOwner{server.pid, server.uid};
}

// Connects to one of the names of the process's status socket. Returns
// NOT_FOUND if nobody listens at the name.
absl::StatusOr<progress::ForeignFd> ConnectTo(pid_t process, int name,
                                              absl::Time end) {
  absl::StatusOr<progress::ForeignFd> socket = NewSocket();
  if (!socket.ok()) return socket;
  sockaddr_un address;
  const socklen_t size = StatusAddress(process, &address, name);
  while (connect(socket->get(), reinterpret_cast<sockaddr*>(&address), size) !=
         0) {
    if (errno == ECONNREFUSED) return absl::NotFoundError("nobody listens");
    // Tries again after these errors: the backlog is full, or a signal
    // interrupted the call.
    if (errno != EAGAIN && errno != EINTR) {
      return base::ErrnoStatus(errno, "connect to the status socket");
    }
    if (base::SteadyNow() > end) return TooLate();
    absl::SleepFor(kPauseWhileFull);
  }
  return socket;
}

// The connection to the process that answers, which may be another user's, and
// hostile.
struct Server {
  progress::ForeignFd socket;
  uid_t uid;
};

absl::StatusOr<Server> Connect(pid_t process, absl::Time end) {
  const pid_t own = PidInItsNamespace(process);
  absl::Status otherwise = absl::NotFoundError(
      absl::StrCat("process ", process,
                   " does not answer: has it a connection over Penstock, "
                   "PENSTOCK_STATUS_SOCKET=on, and this network namespace?"));
  for (int name = 0; name < kStatusNames; ++name) {
    absl::StatusOr<progress::ForeignFd> socket = ConnectTo(own, name, end);
    if (absl::IsNotFound(socket.status())) continue;
    if (!socket.ok()) return socket.status();
    const absl::StatusOr<StatusOwner> owner = OwnerOf(socket->get());
    if (!owner.ok()) return owner.status();
    if (owner->process == process) {
      return Server{*std::move(socket), owner->uid};
    }
    otherwise = absl::PermissionDeniedError(
        absl::StrCat("process ", owner->process, " of uid ", owner->uid,
                     " answers in the place of process ", process));
  }
  return otherwise;
}

absl::Status WaitUntilReadable(int fd, absl::Time end) {
  pollfd waits = {fd, POLLIN, 0};
  while (true) {
    const absl::Duration left = end - base::SteadyNow();
    if (left <= absl::ZeroDuration()) return TooLate();
    const int ready =
        poll(&waits, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return absl::OkStatus();
    if (ready < 0 && errno != EINTR) return base::ErrnoStatus(errno, "poll");
  }
}

absl::StatusOr<std::string> ReadToTheEnd(int fd, absl::Time end) {
  std::string answer;
  char bytes[64 * 1024];
  while (true) {
    const absl::Status waited = WaitUntilReadable(fd, end);
    if (!waited.ok()) return waited;
    const ssize_t got = ReceiveBytes(fd, bytes, sizeof bytes);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    // Treats a reset as the end of the answer, because the socket was closed
    // before the question was read.
    if (got == 0 || (got < 0 && errno == ECONNRESET)) return answer;
    if (got < 0) return base::ErrnoStatus(errno, "read the answer");
    answer.append(bytes, static_cast<size_t>(got));
    if (answer.size() > kMaxAnswerBytes) {
      return absl::ResourceExhaustedError("the answer is too long");
    }
  }
}

absl::Status ClosedBy(uid_t uid) {
  if (geteuid() != 0 && geteuid() != uid) {
    return absl::PermissionDeniedError(absl::StrCat(
        "the process is of uid ", uid, ": it answers its own user and root"));
  }
  return absl::UnavailableError(
      "the process closed the connection: it is asked by eight others, does "
      "not know the question, or ends");
}

absl::StatusOr<std::string> BodyOf(const std::string& answer) {
  const size_t end = answer.find('\n');
  uint64_t bytes = 0;
  if (end == std::string::npos || !absl::StartsWith(answer, kAnswerPrefix) ||
      !absl::SimpleAtoi(
          answer.substr(kAnswerPrefix.size(), end - kAnswerPrefix.size()),
          &bytes) ||
      answer.size() - end - 1 != bytes) {
    return absl::UnavailableError(
        "the answer is cut short, or another release's");
  }
  return answer.substr(end + 1);
}

}  // namespace

std::string StatusSocketName(pid_t process, int name) {
  return name == 0 ? absl::StrCat("penstock-status-", process)
                   : absl::StrCat("penstock-status-", process, ".", name);
}

unsigned StatusAddress(pid_t process, sockaddr_un* address, int name) {
  return AbstractAddress(StatusSocketName(process, name), address);
}

absl::StatusOr<StatusOwner> OwnerOfStatusSocket(absl::string_view name) {
  absl::StatusOr<progress::ForeignFd> socket = NewSocket();
  if (!socket.ok()) return socket.status();
  sockaddr_un address;
  const socklen_t size = AbstractAddress(name, &address);
  if (connect(socket->get(), reinterpret_cast<sockaddr*>(&address), size) !=
      0) {
    return base::ErrnoStatus(errno, "connect to the status socket");
  }
  return OwnerOf(socket->get());
}

absl::StatusOr<std::string> AskProcess(pid_t process,
                                       absl::string_view question,
                                       absl::Duration limit) {
  const absl::Time end = base::SteadyNow() + limit;
  absl::StatusOr<Server> server = Connect(process, end);
  if (!server.ok()) return server.status();
  const std::string line = absl::StrCat(question, "\n");
  // Sends the question in one call, because a new socket has room for such a
  // short text.
  if (send(server->socket.get(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    if (errno == EPIPE) return ClosedBy(server->uid);
    return base::ErrnoStatus(errno, "ask");
  }
  absl::StatusOr<std::string> answer = ReadToTheEnd(server->socket.get(), end);
  if (!answer.ok()) return answer;
  if (answer->empty()) return ClosedBy(server->uid);
  return BodyOf(*answer);
}

}  // namespace monitoring
}  // namespace penstock
