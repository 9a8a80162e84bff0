#include "transport/rpc/opening.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/printable.h"
#include "transport/base/status_util.h"
#include "transport/fabric/tcp/socket.h"
#include "transport/rpc/address_text.h"
#include "transport/rpc/greeting.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace rpc {

std::shared_ptr<Opening> Opening::Begin(progress::EventLoop* loop,
                                        const HostPort& target,
                                        const std::string& token,
                                        absl::Duration limit, Done done) {
  std::shared_ptr<Opening> opening(
      new Opening(loop, target, token, std::move(done)));
  loop->Post([opening, limit] {
    opening->limit_ = opening->loop_->RunAfter(limit, [opening, limit] {
      opening->Finish(absl::UnavailableError(
          absl::StrCat("connect to ", opening->TargetText(), ": no answer in ",
                       absl::FormatDuration(limit))));
    });
    Resolve(opening->target_, [opening](absl::StatusOr<Addresses> addresses) {
      opening->loop_->Post([opening, addresses = std::move(addresses)] {
        opening->OnResolved(addresses);
      });
    });
  });
  return opening;
}

void Opening::Cancel() {
  std::shared_ptr<Opening> self = shared_from_this();
  loop_->Post([self] {
    self->done_ = nullptr;
    self->Finish(absl::CancelledError());
  });
}

void Opening::OnResolved(absl::StatusOr<Addresses> addresses) {
  if (done_ == nullptr) return;
  if (!addresses.ok()) return Finish(addresses.status());
  addresses_ = *std::move(addresses);
  ConnectToNext();
}

void Opening::ConnectToNext() {
  while (next_ < addresses_.size()) {
    const sockaddr_storage& address = addresses_[next_++];
    loop_->Unwatch(std::exchange(watch_, 0));
    socket_.Reset(socket(address.ss_family,
                         SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    if (!socket_.valid()) {  // for example on a host without IPv6
      last_error_ = base::ErrnoStatus(errno, "socket");
      continue;
    }
    fabric::tcp::SetNoDelay(socket_.get());
    const int result =
        connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address),
                LengthOf(address));
    if (result == 0 || errno == EINPROGRESS) return Watch(EPOLLOUT);
    last_error_ = base::ErrnoStatus(errno, "connect");
  }
  Finish(absl::UnavailableError(
      absl::StrCat("connect to ", TargetText(), ": ", last_error_.message())));
}

void Opening::Watch(uint32_t events) {
  std::shared_ptr<Opening> self = shared_from_this();
  absl::StatusOr<progress::EventLoop::Id> watch = loop_->Watch(
      socket_.get(), events, [self](uint32_t) { self->OnSocket(); });
  if (!watch.ok()) return Finish(watch.status());
  watch_ = *watch;
}

void Opening::OnSocket() {
  if (done_ == nullptr) return;
  if (connected_) return OnReadable();
  int error = 0;
  socklen_t length = sizeof error;
  if (getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &error, &length) != 0) {
    error = errno;
  }
  if (error == 0) return OnConnected();
  last_error_ = base::ErrnoStatus(error, "connect");
  ConnectToNext();
}

void Opening::OnConnected() {
  connected_ = true;
  const std::string greeting =
      EncodeGreeting(Greeting{wire::kOldestVersion, wire::kVersion, token_});
  // Sends the greeting in one call, because a new socket has room for all of
  // it.
  if (send(socket_.get(), greeting.data(), greeting.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(greeting.size())) {
    return Finish(absl::UnavailableError(
        base::ErrnoStatus(errno, "greet " + TargetText()).message()));
  }
  loop_->SetEvents(watch_, EPOLLIN);
}

void Opening::OnReadable() {
  char buffer[4096];
  const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    return Finish(absl::UnavailableError(absl::StrCat(
        TargetText(), " closed the connection instead of greeting")));
  }
  received_.append(buffer, static_cast<size_t>(got));
  absl::string_view rest = received_;
  const absl::StatusOr<absl::optional<Answer>> answer = TakeAnswer(&rest);
  if (!answer.ok()) {
    return Finish(absl::UnavailableError(
        absl::StrCat(TargetText(), ": ", answer.status().message())));
  }
  if (!answer->has_value()) return;
  const uint8_t version = (*answer)->version;
  if (version < wire::kOldestVersion || version > wire::kVersion) {
    return Finish(absl::UnavailableError(
        absl::StrCat(TargetText(), " refused the connection: ",
                     base::Printable((*answer)->refusal, kMaxRefusalBytes))));
  }
  Opened opened;
  opened.version = version;
  opened.received = std::string(rest);
  opened.peer = AddressText(addresses_[next_ - 1]);
  loop_->Unwatch(std::exchange(watch_, 0));
  opened.socket = std::move(socket_);
  Finish(std::move(opened));
}

void Opening::Finish(absl::StatusOr<Opened> result) {
  loop_->Cancel(std::exchange(limit_, 0));
  loop_->Unwatch(std::exchange(watch_, 0));
  socket_.Reset();
  const Done done = std::exchange(done_, nullptr);
  if (done != nullptr) done(std::move(result));
}

}  // namespace rpc
}  // namespace penstock
