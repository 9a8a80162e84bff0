#include "transport/fabric/shm/listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/control.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// With no descriptors left the socket stays readable: look again only so often.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::shared_ptr<Listener>> Listener::Create(Options options) {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return loop.status();
  absl::StatusOr<std::string> name = NewSocketName();
  if (!name.ok()) return name.status();
  absl::StatusOr<base::UniqueFd> socket = ListenAt(*name);
  if (!socket.ok()) return socket.status();
  std::shared_ptr<Listener> listener(new Listener(
      std::move(options), *std::move(name), *std::move(socket), *loop));
  absl::Status watched = listener->Watch();
  if (!watched.ok()) return watched;
  return listener;
}

Listener::Listener(Options options, std::string name, base::UniqueFd socket,
                   progress::EventLoop* loop)
    : options_(std::move(options)),
      name_(std::move(name)),
      socket_(std::move(socket)),
      loop_(loop),
      fork_count_(progress::ForkCount()) {}

Listener::~Listener() {
  loop_->Unwatch(watch_);
  for (auto& entry : half_open_) {
    loop_->Unwatch(entry.second.watch);
    loop_->Cancel(entry.second.timer);
  }
}

bool Listener::IsForeign() const {
  return fork_count_ != progress::ForkCount();
}

absl::Status Listener::Watch() {
  std::weak_ptr<Listener> weak = shared_from_this();
  std::lock_guard<std::mutex> lock(mu_);
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop_->Watch(socket_.get(), EPOLLIN, [weak](uint32_t) {
        if (std::shared_ptr<Listener> self = weak.lock()) self->AcceptOnLoop();
      });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

absl::Status Listener::Expect(const std::string& token,
                              std::shared_ptr<Attempt> attempt) {
  if (token.empty() || token.size() > kMaxTokenBytes) {
    return absl::InvalidArgumentError("a token has 1 to 64 bytes");
  }
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (!expected_.emplace(token, attempt).second) {
      return absl::AlreadyExistsError("the token is in use");
    }
  }
  std::weak_ptr<Listener> weak = shared_from_this();
  std::weak_ptr<Attempt> weak_attempt = attempt;
  loop_->RunAfter(options_.setup_timeout, [weak, weak_attempt, token] {
    std::shared_ptr<Listener> self = weak.lock();
    std::shared_ptr<Attempt> late = weak_attempt.lock();
    if (late == nullptr) return;
    if (self != nullptr) self->Forget(token, late.get());
    late->Finish(absl::DeadlineExceededError(
        "the peer did not connect to this process's UNIX socket in time"));
  });
  return absl::OkStatus();
}

void Listener::Forget(const std::string& token, const Attempt* attempt) {
  if (IsForeign()) return;
  std::lock_guard<std::mutex> lock(mu_);
  auto it = expected_.find(token);
  if (it != expected_.end() && it->second.get() == attempt) {
    expected_.erase(it);
  }
}

void Listener::AcceptOnLoop() {
  for (;;) {
    base::UniqueFd socket(
        accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      // Of another user: closed before it can take a half-open place. That
      // side finds out the same way, and says why.
      if (CheckPeerUid(socket.get()).ok()) AddHalfOpenOnLoop(std::move(socket));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) PauseOnLoop();
    return;
  }
}

void Listener::PauseOnLoop() {
  std::weak_ptr<Listener> weak = shared_from_this();
  {
    std::lock_guard<std::mutex> lock(mu_);
    loop_->Unwatch(watch_);
    watch_ = 0;
  }
  loop_->RunAfter(kAcceptPause, [weak] {
    std::shared_ptr<Listener> self = weak.lock();
    if (self != nullptr && !self->Watch().ok()) self->PauseOnLoop();
  });
}

void Listener::AddHalfOpenOnLoop(base::UniqueFd socket) {
  std::weak_ptr<Listener> weak = shared_from_this();
  std::lock_guard<std::mutex> lock(mu_);
  if (half_open_.size() >= options_.max_half_open) return;
  const uint64_t key = next_key_++;
  auto decide = [weak, key] {
    if (std::shared_ptr<Listener> self = weak.lock()) self->DecideOnLoop(key);
  };
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop_->Watch(socket.get(), EPOLLIN, [decide](uint32_t) { decide(); });
  if (!watch.ok()) return;
  HalfOpen& half_open = half_open_[key];
  half_open.socket = std::move(socket);
  half_open.watch = *watch;
  half_open.timer = loop_->RunAfter(options_.setup_timeout, decide);
}

base::UniqueFd Listener::TakeHalfOpen(uint64_t key) {
  std::lock_guard<std::mutex> lock(mu_);
  auto it = half_open_.find(key);
  if (it == half_open_.end()) return base::UniqueFd();
  loop_->Unwatch(it->second.watch);
  loop_->Cancel(it->second.timer);
  base::UniqueFd socket = std::move(it->second.socket);
  half_open_.erase(it);
  return socket;
}

std::shared_ptr<Attempt> Listener::TakeAttempt(const std::string& token) {
  std::lock_guard<std::mutex> lock(mu_);
  auto it = expected_.find(token);
  if (it == expected_.end()) return nullptr;
  std::shared_ptr<Attempt> attempt = std::move(it->second);
  expected_.erase(it);
  return attempt;
}

void Listener::DecideOnLoop(uint64_t key) {
  base::UniqueFd socket = TakeHalfOpen(key);
  if (!socket.valid()) return;
  absl::StatusOr<ReceivedSetup> hello = ReceiveSetup(socket.get());
  if (!hello.ok() || hello->message.kind != SetupMessage::Kind::kHello) return;
  std::shared_ptr<Attempt> attempt = TakeAttempt(hello->message.token);
  if (attempt == nullptr || !attempt->pending()) return;
  attempt->Finish(Welcome(std::move(socket), *std::move(hello)));
}

absl::StatusOr<std::unique_ptr<Endpoint>> Listener::Welcome(
    base::UniqueFd socket, ReceivedSetup hello) {
  // Checked first: a peer that is refused sees the connection closed.
  absl::StatusOr<PeerSegment> peer =
      MapControl(std::move(hello.fd), hello.message.size);
  if (!peer.ok()) return peer.status();
  absl::StatusOr<Segment> control = CreateControl(options_.ring_bytes);
  if (!control.ok()) return control.status();
  SetupMessage welcome;
  welcome.kind = SetupMessage::Kind::kWelcome;
  welcome.size = options_.ring_bytes;
  absl::Status sent = SendSetup(socket.get(), welcome, control->fd());
  if (!sent.ok()) return sent;
  return MakeEndpoint(std::move(socket), *std::move(control), *std::move(peer),
                      options_.arena);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
