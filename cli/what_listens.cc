#include "cli/what_listens.h"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "transport/base/printable.h"
#include "transport/base/steady_time.h"
#include "transport/base/unique_fd.h"

namespace penstock::cli {
namespace {

// The number of bytes that identify an answer: the size of a frame header.
constexpr size_t kEnoughBytes = 9;
constexpr size_t kMaxAnswerBytes = 512;
constexpr size_t kMaxLineBytes = 60;
// The greeting: an HTTP/2 client's preface, and an empty SETTINGS frame.
constexpr absl::string_view kGreeting(
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0", 24 + 9);

// Waits for `events` of `fd`. Returns true if they came before `end`.
bool Await(int fd, short events, absl::Time end) {
  pollfd waits = {fd, events, 0};
  while (true) {
    const absl::Duration left = end - base::SteadyNow();
    if (left <= absl::ZeroDuration()) return false;
    const int ready =
        poll(&waits, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
  }
}

// Returns an invalid descriptor on failure.
base::UniqueFd ConnectTo(const sockaddr* address, socklen_t size,
                         absl::Time end) {
  base::UniqueFd fd(socket(address->sa_family,
                           SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return fd;
  if (connect(fd.get(), address, size) == 0) return fd;
  int error = errno;
  socklen_t error_size = sizeof error;
  if (error != EINPROGRESS || !Await(fd.get(), POLLOUT, end) ||
      getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &error_size) != 0 ||
      error != 0) {
    return base::UniqueFd();
  }
  return fd;
}

base::UniqueFd ConnectToPath(absl::string_view path, absl::Time end) {
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return base::UniqueFd();
  }
  std::memcpy(address.sun_path, path.data(), path.size());
  return ConnectTo(reinterpret_cast<const sockaddr*>(&address), sizeof address,
                   end);
}

base::UniqueFd ConnectToName(absl::string_view name, absl::Time end) {
  const size_t colon = name.rfind(':');
  if (colon == name.npos) return base::UniqueFd();
  absl::string_view host = name.substr(0, colon);
  absl::string_view port = name.substr(colon + 1);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* list = nullptr;
  if (getaddrinfo(std::string(host).c_str(), std::string(port).c_str(), &hints,
                  &list) != 0) {
    return base::UniqueFd();
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(list,
                                                             freeaddrinfo);
  for (const addrinfo* each = list; each != nullptr; each = each->ai_next) {
    base::UniqueFd fd = ConnectTo(each->ai_addr, each->ai_addrlen, end);
    if (fd.valid()) return fd;
  }
  return base::UniqueFd();
}

// Connects to the first address of `target`.
base::UniqueFd Connect(absl::string_view target, absl::Time end) {
  if (absl::ConsumePrefix(&target, "unix:")) {
    if (absl::StartsWith(target, "///")) target.remove_prefix(2);
    return ConnectToPath(target, end);
  }
  for (absl::string_view scheme : {"dns:", "ipv4:", "ipv6:"}) {
    if (!absl::ConsumePrefix(&target, scheme)) continue;
    absl::ConsumePrefix(&target, "///");
    return ConnectToName(target.substr(0, target.find(',')), end);
  }
  return ConnectToName(target, end);
}

// Returns the beginning of the answer.
std::string Greet(int fd, absl::Time end) {
  if (send(fd, kGreeting.data(), kGreeting.size(), MSG_NOSIGNAL) < 0) return "";
  std::string answer;
  char bytes[kMaxAnswerBytes];
  while (answer.size() < kEnoughBytes && Await(fd, POLLIN, end)) {
    const ssize_t got = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) break;
    answer.append(bytes, static_cast<size_t>(got));
  }
  return answer;
}

// Returns true for a frame that begins or ends a connection: SETTINGS or GOAWAY
// on stream 0.
bool IsHttp2(absl::string_view answer) {
  return answer.size() >= kEnoughBytes && answer[0] == '\0' &&
         (answer[3] == 4 || answer[3] == 7) &&
         answer.substr(5, 4) == absl::string_view("\0\0\0\0", 4);
}

// Returns true for a TLS alert or handshake of any version.
bool IsTls(absl::string_view answer) {
  return answer.size() >= 2 && (answer[0] == 0x15 || answer[0] == 0x16) &&
         answer[1] == 3;
}

}  // namespace

std::string MeaningOfAnswer(absl::string_view answer, bool with_tls) {
  if (answer.empty() || IsHttp2(answer)) return "";
  if (IsTls(answer)) {
    return with_tls ? "" : "the server uses TLS: give --tls or --ca=FILE";
  }
  const size_t end = std::min(answer.find_first_of("\r\n"), answer.size());
  return absl::StrCat(
      "no gRPC server listens there, but a program that sends \"",
      base::Printable(answer.substr(0, end), kMaxLineBytes),
      "\"; is it the right port?");
}

std::string WhatListensAt(absl::string_view target, absl::Duration limit,
                          bool with_tls) {
  const absl::Time end = base::SteadyNow() + limit;
  const base::UniqueFd fd = Connect(target, end);
  return fd.valid() ? MeaningOfAnswer(Greet(fd.get(), end), with_tls) : "";
}

}  // namespace penstock::cli
