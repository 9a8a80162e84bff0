#include "transport/rpc/greeter.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/metrics/registry.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace rpc {
namespace {

constexpr absl::Duration kGreetingLimit = absl::Seconds(5);

struct Verdict {
  uint8_t version = 0;
  paths::HalfOpen::Slot place;
  metrics::Refusal reason = metrics::Refusal::kToken;
  std::string refusal;
};

Verdict Judge(const Greeting& greeting, const std::string& token) {
  Verdict verdict;
  const uint8_t newest = std::min(greeting.newest, wire::kVersion);
  if (!IsSameToken(greeting.token, token)) {
    verdict.refusal =
        "the token is not this server's; was the server restarted since "
        "the token was given out?";
    return verdict;
  }
  if (newest < std::max(greeting.oldest, wire::kOldestVersion)) {
    verdict.reason = metrics::Refusal::kVersion;
    verdict.refusal =
        absl::StrCat("no common version: the client speaks ", greeting.oldest,
                     " to ", greeting.newest, ", the server ",
                     wire::kOldestVersion, " to ", wire::kVersion);
    return verdict;
  }
  verdict.place = paths::HalfOpen::OfTokenHolders()->Enter();
  if (verdict.place == nullptr) {
    verdict.reason = metrics::Refusal::kFlood;
    verdict.refusal = "too many others with the token are being negotiated";
    return verdict;
  }
  verdict.version = newest;
  return verdict;
}

}  // namespace

Greeter::Greeter(progress::EventLoop* loop, base::UniqueFd socket,
                 const std::string& peer, const std::string& token, Done done)
    : loop_(loop),
      socket_(std::move(socket)),
      peer_(peer),
      token_(token),
      done_(std::move(done)) {}

void Greeter::Start() {
  OnReadable();
  if (done_ != nullptr) Watch();
}

void Greeter::Watch() {
  std::shared_ptr<Greeter> self = shared_from_this();
  const absl::StatusOr<progress::EventLoop::Id> watch = loop_->Watch(
      socket_.get(), EPOLLIN, [self](uint32_t) { self->OnReadable(); });
  if (!watch.ok()) return Drop(watch.status());
  watch_ = *watch;
  limit_ = loop_->RunAfter(kGreetingLimit, [self] {
    self->Drop(absl::DeadlineExceededError("the client did not greet"));
  });
}

void Greeter::MakeRoom() {
  OnReadable();
  if (done_ == nullptr) return;
  metrics::Registry::Get()->Count(metrics::Metric::kRefused,
                                  {metrics::Refusal::kFlood});
  Drop(absl::ResourceExhaustedError("too many others have not greeted either"));
}

void Greeter::OnReadable() {
  if (done_ == nullptr) return;
  char buffer[4096];
  const ssize_t got = recv(socket_.get(), buffer, sizeof buffer, 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0)
    return Drop(absl::UnavailableError("the client has closed the connection"));
  received_.append(buffer, static_cast<size_t>(got));
  absl::string_view rest = received_;
  const absl::StatusOr<absl::optional<Greeting>> greeting = TakeGreeting(&rest);
  if (!greeting.ok()) return Drop(greeting.status());
  if (greeting->has_value()) Answer(**greeting, rest);
}

void Greeter::Answer(const Greeting& greeting, absl::string_view rest) {
  Verdict verdict = Judge(greeting, token_);
  const std::string answer =
      EncodeAnswer(rpc::Answer{verdict.version, verdict.refusal});
  // Sends the answer in one call, because a new socket has room for all of it.
  if (send(socket_.get(), answer.data(), answer.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(answer.size())) {
    return Drop(absl::UnavailableError("the client has closed the connection"));
  }
  if (verdict.version == 0) {
    metrics::Registry::Get()->Count(metrics::Metric::kRefused,
                                    {verdict.reason});
    return Drop(absl::PermissionDeniedError(verdict.refusal));
  }
  loop_->Unwatch(std::exchange(watch_, 0));
  Greeted greeted;
  greeted.opened.socket = std::move(socket_);
  greeted.opened.version = verdict.version;
  greeted.opened.received = std::string(rest);
  greeted.opened.peer = peer_;
  greeted.place = std::move(verdict.place);
  const Done done = std::move(done_);
  End();
  done(std::move(greeted));
}

void Greeter::Drop(const absl::Status& why) {
  if (done_ == nullptr) return;
  const Done done = std::move(done_);
  End();
  done(why);
}

void Greeter::End() {
  done_ = nullptr;
  loop_->Cancel(std::exchange(limit_, 0));
  loop_->Unwatch(std::exchange(watch_, 0));
  socket_.Reset();
}

}  // namespace rpc
}  // namespace penstock
