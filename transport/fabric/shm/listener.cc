#include "transport/fabric/shm/listener.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "transport/base/descriptors.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/endpoint.h"
#include "transport/fabric/shm/socket_file.h"
#include "transport/progress/aside.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// The pause while no descriptors are left, or too many sockets wait to be
// closed. Without the pause, the loop would be woken again immediately, because
// the socket stays readable.
constexpr absl::Duration kAcceptPause = absl::Milliseconds(100);

}  // namespace

absl::StatusOr<std::shared_ptr<Listener>> Listener::Create(Options options) {
  absl::StatusOr<std::string> name = NewSocketName();
  if (!name.ok()) return name.status();
  SocketAddress address{*std::move(name), options.directory};
  if (!address.directory.empty()) {
    absl::Status usable = CheckDirectory(address.directory, geteuid());
    if (!usable.ok()) return usable;
    RemoveStaleSockets(address.directory);
  }
  return CreateAt(std::move(address), std::move(options));
}

absl::StatusOr<std::shared_ptr<Listener>> Listener::CreateAt(
    SocketAddress address, Options options) {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return loop.status();
  absl::StatusOr<base::UniqueFd> socket = ListenAt(address);
  if (!socket.ok()) return socket.status();
  std::shared_ptr<Listener> listener(new Listener(
      std::move(options), std::move(address), *std::move(socket), *loop));
  absl::Status watched = listener->Watch();
  if (!watched.ok()) return watched;
  return listener;
}

Listener::Listener(Options options, SocketAddress address, PeerSocket socket,
                   progress::EventLoop* loop)
    : options_(std::move(options)),
      address_(std::move(address)),
      socket_(std::move(socket)),
      loop_(loop),
      fork_count_(progress::ForkCount()),
      awaited_(AwaitedTokens::Create(
          loop, options_.setup_timeout,
          "the peer did not connect to this process's UNIX socket in time")) {}

Listener::~Listener() {
  if (!address_.directory.empty()) RemoveSocketFile(PathOf(address_));
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
  base::MutexLock lock(&mu_);
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop_->Watch(socket_.get(), EPOLLIN, [weak](uint32_t) {
        if (std::shared_ptr<Listener> self = weak.lock()) self->AcceptOnLoop();
      });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

std::unique_ptr<PendingConnect> Listener::Expect(
    std::shared_ptr<Attempt> attempt) {
  const std::string& token = attempt->token();
  absl::Status usable = CheckToken(token);
  if (!usable.ok()) return FailLater(std::move(attempt), usable);
  return awaited_->Await(token, std::move(attempt));
}

void Listener::AcceptOnLoop() {
  for (;;) {
    // Pauses while too many tasks wait. Each connection costs a task, and peers
    // decide how many connections they open.
    if (progress::IsBusyAside()) return PauseOnLoop();
    base::UniqueFd socket(
        accept4(socket_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
    if (socket.valid()) {
      const base::Descriptors left = base::Descriptors::Now();
      PeerSocket accepted(std::move(socket));
      if (left.HasRoomForPath()) {
        AcceptedOnLoop(std::move(accepted));
      } else if (left.Excess() > 0) {
        return PauseOnLoop();  // until this socket is closed
      }
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno != EAGAIN) PauseOnLoop();
    return;
  }
}

// Closes the connection of a refused user before it counts as half-open. The
// refused side finds the reason itself, and reports it.
void Listener::AcceptedOnLoop(PeerSocket socket) {
  absl::StatusOr<PeerUser> peer = IdentifyPeer(socket.get());
  if (!peer.ok() || (peer->is_other && !options_.other_users)) return;
  AddHalfOpenOnLoop(std::move(socket), *peer);
}

absl::optional<uint64_t> Listener::ExcessLocked(const PeerUser& peer) const {
  const size_t limit = options_.max_half_open;
  absl::optional<uint64_t> oldest_own;
  absl::optional<uint64_t> oldest_other;
  size_t others = 0;
  for (const auto& entry : half_open_) {  // the oldest first
    const bool is_other = entry.second.peer.is_other;
    auto& oldest = is_other ? oldest_other : oldest_own;
    if (!oldest.has_value()) oldest = entry.first;
    others += is_other ? 1 : 0;
  }
  if (peer.is_other && others >= limit / 2) return oldest_other;
  return half_open_.size() >= limit ? oldest_own : absl::nullopt;
}

void Listener::MakeRoomOnLoop(const PeerUser& peer) {
  absl::optional<uint64_t> excess;
  {
    base::MutexLock lock(&mu_);
    excess = ExcessLocked(peer);
  }
  if (excess.has_value()) DecideOnLoop(*excess);
}

void Listener::PauseOnLoop() {
  std::weak_ptr<Listener> weak = shared_from_this();
  {
    base::MutexLock lock(&mu_);
    loop_->Unwatch(watch_);
    watch_ = 0;
  }
  loop_->RunAfter(kAcceptPause, [weak] {
    std::shared_ptr<Listener> self = weak.lock();
    if (self != nullptr && !self->Watch().ok()) self->PauseOnLoop();
  });
}

void Listener::AddHalfOpenOnLoop(PeerSocket socket, const PeerUser& peer) {
  MakeRoomOnLoop(peer);
  std::weak_ptr<Listener> weak = shared_from_this();
  base::MutexLock lock(&mu_);
  const uint64_t key = next_key_++;
  auto decide = [weak, key] {
    if (std::shared_ptr<Listener> self = weak.lock()) self->DecideOnLoop(key);
  };
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop_->Watch(socket.get(), EPOLLIN, [decide](uint32_t) { decide(); });
  if (!watch.ok()) return;
  HalfOpen& half_open = half_open_[key];
  half_open.socket = std::move(socket);
  half_open.peer = peer;
  half_open.watch = *watch;
  half_open.timer = loop_->RunAfter(options_.setup_timeout, decide);
}

Listener::HalfOpen Listener::TakeHalfOpen(uint64_t key) {
  base::MutexLock lock(&mu_);
  auto it = half_open_.find(key);
  if (it == half_open_.end()) return HalfOpen();
  loop_->Unwatch(it->second.watch);
  loop_->Cancel(it->second.timer);
  HalfOpen half_open = std::move(it->second);
  half_open_.erase(it);
  return half_open;
}

void Listener::DecideOnLoop(uint64_t key) {
  HalfOpen half_open = TakeHalfOpen(key);
  if (!half_open.socket.valid()) return;
  absl::StatusOr<ReceivedSetup> hello = ReceiveSetup(half_open.socket.get());
  if (!hello.ok() || hello->message.kind != SetupMessage::Kind::kHello) return;
  std::shared_ptr<Attempt> attempt = awaited_->Take(hello->message.token);
  if (attempt == nullptr) return;
  attempt->Finish(Welcome(std::move(half_open), *std::move(hello)));
}

absl::StatusOr<std::unique_ptr<Endpoint>> Listener::Welcome(
    HalfOpen half_open, ReceivedSetup hello) {
  // Checks the user first, so that a refused peer sees the connection closed.
  absl::StatusOr<Sharing> sharing = Share(options_, half_open.peer);
  if (!sharing.ok()) return sharing.status();
  absl::StatusOr<PeerSegment> peer =
      MapControl(std::move(hello.fd), hello.message.size);
  if (!peer.ok()) return peer.status();
  Agree(hello.message.copies, *PageOf(*peer), &*sharing);
  absl::StatusOr<Segment> control =
      CreateControl(options_.ring_bytes, FeaturesOf(*sharing));
  if (!control.ok()) return control.status();
  SetupMessage welcome;
  welcome.kind = SetupMessage::Kind::kWelcome;
  welcome.size = options_.ring_bytes;
  welcome.copies = sharing->copies;
  absl::Status sent = SendSetup(half_open.socket.get(), welcome, control->fd());
  if (!sent.ok()) return sent;
  return ShmEndpoint::Create(std::move(half_open.socket), *std::move(control),
                             *std::move(peer), *std::move(sharing));
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
