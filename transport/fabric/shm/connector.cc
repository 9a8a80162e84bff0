#include "transport/fabric/shm/connector.h"

#include <sys/epoll.h>

#include <utility>

#include "transport/fabric/shm/address.h"
#include "transport/fabric/shm/control.h"
#include "transport/fabric/shm/setup_message.h"

namespace penstock {
namespace fabric {
namespace shm {

std::shared_ptr<Connector> Connector::Create(Options options,
                                             progress::EventLoop* loop,
                                             std::shared_ptr<Attempt> attempt) {
  return std::shared_ptr<Connector>(
      new Connector(std::move(options), loop, std::move(attempt)));
}

Connector::Connector(Options options, progress::EventLoop* loop,
                     std::shared_ptr<Attempt> attempt)
    : options_(std::move(options)), loop_(loop), attempt_(std::move(attempt)) {}

void Connector::StartOnLoop(const std::string& socket_name,
                            const std::string& token) {
  if (state_ != State::kIdle || !attempt_->pending()) return;
  absl::Status begun = Begin(socket_name, token);
  if (!begun.ok()) FinishOnLoop(std::move(begun));
}

absl::Status Connector::Begin(const std::string& socket_name,
                              const std::string& token) {
  absl::StatusOr<base::UniqueFd> socket = ConnectTo(socket_name);
  if (!socket.ok()) return socket.status();
  socket_ = *std::move(socket);
  absl::Status trusted = CheckPeerUid(socket_.get());
  if (!trusted.ok()) return trusted;
  absl::StatusOr<Segment> control = CreateControl(options_.ring_bytes);
  if (!control.ok()) return control.status();
  SetupMessage hello;
  hello.kind = SetupMessage::Kind::kHello;
  hello.size = options_.ring_bytes;
  hello.token = token;
  absl::Status sent = SendSetup(socket_.get(), hello, control->fd());
  if (!sent.ok()) return sent;
  control_ = *std::move(control);

  std::shared_ptr<Connector> self = shared_from_this();
  absl::StatusOr<progress::EventLoop::Id> watch = loop_->Watch(
      socket_.get(), EPOLLIN,
      [self](uint32_t) { self->FinishOnLoop(self->ReceiveWelcome()); });
  if (!watch.ok()) return watch.status();
  watch_ = *watch;
  timer_ = loop_->RunAfter(options_.setup_timeout, [self] {
    self->FinishOnLoop(absl::DeadlineExceededError(
        "the peer did not answer at its UNIX socket in time"));
  });
  state_ = State::kWaiting;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<Endpoint>> Connector::ReceiveWelcome() {
  if (state_ != State::kWaiting) return absl::CancelledError("ended");
  // Before its socket goes to the endpoint's link, which watches it itself.
  loop_->Unwatch(watch_);
  absl::StatusOr<ReceivedSetup> welcome = ReceiveSetup(socket_.get());
  if (absl::IsUnavailable(welcome.status())) {
    return absl::UnavailableError(
        "the peer closed the connection: it does not wait for this token, is "
        "of another version, or has too many callers");
  }
  if (!welcome.ok()) return welcome.status();
  if (welcome->message.kind != SetupMessage::Kind::kWelcome) {
    return absl::InvalidArgumentError("the peer's answer is no welcome");
  }
  absl::StatusOr<PeerSegment> peer =
      MapControl(std::move(welcome->fd), welcome->message.size);
  if (!peer.ok()) return peer.status();
  return MakeEndpoint(std::move(socket_), *std::move(control_),
                      *std::move(peer), options_.arena);
}

void Connector::FinishOnLoop(absl::StatusOr<std::unique_ptr<Endpoint>> result) {
  if (state_ == State::kEnded) return;
  StopOnLoop();
  attempt_->Finish(std::move(result));
}

void Connector::StopOnLoop() {
  state_ = State::kEnded;
  loop_->Unwatch(watch_);
  loop_->Cancel(timer_);
  socket_.Reset();
  control_.reset();
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
