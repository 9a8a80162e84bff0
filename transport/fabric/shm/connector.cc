#include "transport/fabric/shm/connector.h"

#include <sys/epoll.h>

#include <utility>

#include "transport/base/descriptors.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/endpoint.h"
#include "transport/fabric/shm/peer_user.h"
#include "transport/fabric/shm/setup_message.h"
#include "transport/fabric/shm/socket_file.h"
#include "transport/progress/aside.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// The pause before another try if too many sockets wait to be closed.
constexpr absl::Duration kBusyPause = absl::Milliseconds(100);

}  // namespace

std::shared_ptr<Connector> Connector::Create(Options options,
                                             progress::EventLoop* loop,
                                             SocketAddress address,
                                             std::shared_ptr<Attempt> attempt) {
  return std::shared_ptr<Connector>(new Connector(
      std::move(options), loop, std::move(address), std::move(attempt)));
}

Connector::Connector(Options options, progress::EventLoop* loop,
                     SocketAddress address, std::shared_ptr<Attempt> attempt)
    : TimedSetup(loop, std::move(attempt), options.setup_timeout,
                 "the peer did not answer at its UNIX socket in time"),
      options_(std::move(options)),
      address_(std::move(address)) {}

std::shared_ptr<Connector> Connector::self() {
  return std::static_pointer_cast<Connector>(shared_from_this());
}

void Connector::BeginOnLoop() {
  if (has_ended()) return;
  if (progress::IsBusyAside()) {
    loop()->RunAfter(kBusyPause, [self = self()] { self->BeginOnLoop(); });
    return;
  }
  absl::Status begun = base::Descriptors::Now().CheckForPath();
  if (begun.ok()) begun = Reach();
  if (!begun.ok()) FinishOnLoop(std::move(begun));
}

absl::Status Connector::Reach() {
  absl::StatusOr<base::UniqueFd> socket = ConnectTo(address_);
  if (!socket.ok()) return socket.status();
  socket_ = *std::move(socket);
  absl::StatusOr<PeerUser> peer = IdentifyPeer(socket_.get());
  if (!peer.ok()) return peer.status();
  // Checks the directory before sending the token. Anybody who can change the
  // directory can replace the peer's socket.
  if (!address_.directory.empty()) {
    absl::Status safe = CheckDirectory(address_.directory, peer->uid);
    if (!safe.ok()) return safe;
  }
  absl::StatusOr<Sharing> sharing = Share(options_, *peer);
  if (!sharing.ok()) return sharing.status();
  sharing_ = *std::move(sharing);
  absl::Status greeted = Greet();
  return greeted.ok() ? Wait() : greeted;
}

absl::Status Connector::Greet() {
  absl::StatusOr<Segment> control =
      CreateControl(options_.ring_bytes, FeaturesOf(sharing_));
  if (!control.ok()) return control.status();
  SetupMessage hello;
  hello.kind = SetupMessage::Kind::kHello;
  hello.size = options_.ring_bytes;
  hello.copies = sharing_.copies;
  hello.token = attempt().token();
  absl::Status sent = SendSetup(socket_.get(), hello, control->fd());
  if (!sent.ok()) return sent;
  control->CloseFd();  // the peer has a duplicate
  control_ = *std::move(control);
  return absl::OkStatus();
}

absl::Status Connector::Wait() {
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop()->Watch(socket_.get(), EPOLLIN, [self = self()](uint32_t) {
        self->FinishOnLoop(self->ReceiveWelcome());
      });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Endpoint>> Connector::ReceiveWelcome() {
  if (has_ended()) return absl::CancelledError("ended");
  // Unwatches the socket before it moves to the endpoint's link, which has a
  // watch of its own.
  loop()->Unwatch(watch_);
  absl::StatusOr<ReceivedSetup> welcome = ReceiveSetup(socket_.get());
  if (absl::IsUnavailable(welcome.status())) {
    return absl::UnavailableError(
        "the peer closed the connection: it does not wait for this token, has "
        "no memory to share or none for this process's user, is of another "
        "version, or has too many callers or too few descriptors (its log says "
        "more)");
  }
  if (!welcome.ok()) return welcome.status();
  if (welcome->message.kind != SetupMessage::Kind::kWelcome) {
    return absl::InvalidArgumentError("the peer's answer is no welcome");
  }
  absl::StatusOr<PeerSegment> peer =
      MapControl(std::move(welcome->fd), welcome->message.size);
  if (!peer.ok()) return peer.status();
  Agree(welcome->message.copies, *PageOf(*peer), &sharing_);
  return ShmEndpoint::Create(std::move(socket_), *std::move(control_),
                             *std::move(peer), std::move(sharing_));
}

void Connector::ReleaseOnLoop() {
  loop()->Unwatch(watch_);
  if (control_.has_value() && control_->data() != nullptr) {  // gives up
    PageOf(*control_)->closed.store(1, std::memory_order_release);
  }
  socket_.Reset();
  control_.reset();
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
