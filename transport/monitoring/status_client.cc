#include "transport/monitoring/status_client.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"
#include "transport/base/steady_time.h"
#include "transport/base/unique_fd.h"

namespace penstock {
namespace monitoring {
namespace {

// Of 10,000 connections with long reasons.
constexpr size_t kMaxAnswerBytes = 32 * 1024 * 1024;

absl::StatusOr<base::UniqueFd> Connect(pid_t process) {
  base::UniqueFd socket(
      ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return base::ErrnoStatus(errno, "make a socket");
  sockaddr_un address;
  const socklen_t size = StatusAddress(process, &address);
  if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) {
    if (errno != ECONNREFUSED) {
      return base::ErrnoStatus(errno, absl::StrCat("ask process ", process));
    }
    return absl::NotFoundError(
        absl::StrCat("process ", process,
                     " does not answer: has it a connection over Penstock, "
                     "PENSTOCK_STATUS_SOCKET=on, and this network namespace?"));
  }
  ucred server = {};
  socklen_t server_size = sizeof server;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &server,
                 &server_size) != 0 ||
      server.pid != process) {
    return absl::PermissionDeniedError(absl::StrCat(
        "process ", server.pid, " answers in the place of process ", process));
  }
  return socket;
}

absl::Status WaitUntilReadable(int fd, absl::Time end) {
  pollfd waits = {fd, POLLIN, 0};
  while (true) {
    const absl::Duration left = end - base::SteadyNow();
    if (left <= absl::ZeroDuration()) {
      return absl::DeadlineExceededError("the process did not answer in time");
    }
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
    const ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got == 0) return answer;
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got < 0) return base::ErrnoStatus(errno, "read the answer");
    answer.append(bytes, static_cast<size_t>(got));
    if (answer.size() > kMaxAnswerBytes) {
      return absl::ResourceExhaustedError("the answer is too long");
    }
  }
}

absl::StatusOr<std::string> BodyOf(std::string answer) {
  if (answer.empty()) {
    return absl::PermissionDeniedError(
        "the process closed the connection: it answers its own user and root, "
        "8 at a time, and what it knows");
  }
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

std::string StatusSocketName(pid_t process) {
  return absl::StrCat("penstock-status-", process);
}

unsigned StatusAddress(pid_t process, sockaddr_un* address) {
  const std::string name = StatusSocketName(process);
  *address = {};
  address->sun_family = AF_UNIX;
  std::memcpy(address->sun_path + 1, name.data(), name.size());
  return static_cast<unsigned>(offsetof(sockaddr_un, sun_path) + 1 +
                               name.size());
}

absl::StatusOr<std::string> AskProcess(pid_t process,
                                       absl::string_view question,
                                       absl::Duration limit) {
  const absl::Time end = base::SteadyNow() + limit;
  absl::StatusOr<base::UniqueFd> socket = Connect(process);
  if (!socket.ok()) return socket.status();
  const std::string line = absl::StrCat(question, "\n");
  // A fresh socket has room for so little.
  if (send(socket->get(), line.data(), line.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(line.size())) {
    // It was not let in.
    if (errno == EPIPE) return BodyOf("");
    return base::ErrnoStatus(errno, "ask");
  }
  absl::StatusOr<std::string> answer = ReadToTheEnd(socket->get(), end);
  if (!answer.ok() && errno == ECONNRESET) return BodyOf("");
  if (!answer.ok()) return answer;
  return BodyOf(*std::move(answer));
}

}  // namespace monitoring
}  // namespace penstock
