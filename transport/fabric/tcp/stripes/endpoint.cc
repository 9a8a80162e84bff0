#include "transport/fabric/tcp/stripes/endpoint.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"
#include "transport/fabric/tcp/stripes/greeting.h"
#include "transport/fabric/tcp/stripes/stripe.h"
#include "transport/progress/fork_count.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

// Limits the bytes that one Poll() receives over each stripe, because other
// connections wait meanwhile.
constexpr size_t kBytesPerPoll = 256 * 1024;

// Limits the polls between a failure and its report. They receive more than the
// buffer of a socket holds.
constexpr int kMostLastPolls = 256;

// The frames of the largest message that is sent eagerly. An announced message
// costs a round trip more, which on a network is more than copying these
// frames.
constexpr size_t kEagerFrames = 8;

// Sets the socket's options. Ignores errors of options: a socket without them
// works, and notices a dead peer later.
void SetOptions(int fd) {
  tcp::SetNoDelay(fd);
  // Breaks a silent connection after half a minute. The lifeline may be alive
  // meanwhile, so nobody else would notice.
  const int on = 1, idle_seconds = 10, interval_seconds = 5, probes = 4;
  const int millis = 30 * 1000;
  (void)setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_seconds,
                   sizeof idle_seconds);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_seconds,
                   sizeof interval_seconds);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
  (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &millis, sizeof millis);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> StripesEndpoint::Create(
    std::vector<base::UniqueFd> sockets) {
  for (const base::UniqueFd& socket : sockets) {
    SetOptions(socket.get());
    const int flags = fcntl(socket.get(), F_GETFL);
    if (flags < 0 || fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) != 0) {
      return base::ErrnoStatus(errno, "make a socket non-blocking");
    }
  }
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return base::ErrnoStatus(errno, "epoll_create1");
  auto endpoint = absl::WrapUnique(
      new StripesEndpoint(std::move(epoll), std::move(sockets)));
  const absl::Status watched = endpoint->Watch();
  if (!watched.ok()) return watched;
  return std::unique_ptr<Endpoint>(std::move(endpoint));
}

StripesEndpoint::StripesEndpoint(base::UniqueFd epoll,
                                 std::vector<base::UniqueFd> sockets)
    : fork_count_(progress::ForkCount()), epoll_(std::move(epoll)) {
  for (base::UniqueFd& socket : sockets) {
    stripes_.push_back(absl::make_unique<Stripe>(
        this, /*is_first=*/stripes_.empty(), std::move(socket)));
  }
  capabilities_ = first()->units()->capabilities();
  capabilities_.is_lifeline = false;
  capabilities_.push_bytes = 0;
  capabilities_.eager_max_bytes = kEagerFrames * wire::kMaxFramePayload;
  capabilities_.max_reads *= static_cast<int>(stripes_.size());
}

StripesEndpoint::~StripesEndpoint() {
  if (fork_count_ != progress::ForkCount()) return;
  for (const auto& stripe : stripes_) stripe->Close();
}

absl::Status StripesEndpoint::Watch() {
  for (size_t i = 0; i < stripes_.size(); ++i) {
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
    event.data.u64 = i;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, stripes_[i]->fd(), &event) !=
        0) {
      return base::ErrnoStatus(errno, "epoll_ctl");
    }
  }
  // Consumes the first events. Without input they only say that the sockets are
  // writable.
  TakeEvents();
  NoteReadable();
  return absl::OkStatus();
}

void StripesEndpoint::NoteReadable() {
  bool any = false;
  for (const auto& stripe : stripes_) any |= stripe->readable();
  has_more_ = any;
}

void StripesEndpoint::TakeEvents() {
  epoll_event events[kMostStripes];
  const int count = epoll_wait(epoll_.get(), events, kMostStripes, 0);
  for (int i = 0; i < count; ++i) {
    const uint32_t input = events[i].events & ~static_cast<uint32_t>(EPOLLOUT);
    if (input != 0) {
      stripes_[events[i].data.u64]->OnInput(/*hung_up=*/input != EPOLLIN);
    }
  }
}

void StripesEndpoint::WakeOwner() {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  // Reports the present state again, and a socket that has just sent all of its
  // output is writable.
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, first()->fd(), &event);
}

std::string StripesEndpoint::Describe() const {
  return absl::StrCat(stripes_.size(), " sockets");
}

bool StripesEndpoint::Send(absl::Span<const uint8_t> packet) {
  if (!first()->units()->Send(packet)) return false;
  Pump(first());
  return true;
}

bool StripesEndpoint::SendOwned(std::string* packet) {
  if (!first()->units()->SendOwned(packet)) return false;
  Pump(first());
  return true;
}

void StripesEndpoint::BeginBatch() {
  ++batches_;
  for (const auto& stripe : stripes_) stripe->units()->BeginBatch();
}

void StripesEndpoint::EndBatch() {
  --batches_;
  for (const auto& stripe : stripes_) {
    stripe->units()->EndBatch();
    Pump(stripe.get());
  }
}

// Exposes at each stripe. All stripes count their keys equally, so the key is
// the same everywhere.
absl::StatusOr<Exposure> StripesEndpoint::Expose(const memory::Payload& payload,
                                                 size_t max_parts) {
  absl::StatusOr<Exposure> exposure;
  for (const auto& stripe : stripes_) {
    exposure = stripe->units()->Expose(payload, max_parts);
  }
  return exposure;
}

void StripesEndpoint::Withdraw(const RemoteRegion& region) {
  for (const auto& stripe : stripes_) stripe->units()->Withdraw(region);
}

StripesEndpoint::Stripe* StripesEndpoint::LeastBusy() {
  Stripe* least = stripes_[next_].get();
  for (size_t i = 1; i < stripes_.size(); ++i) {
    Stripe* const other = stripes_[(next_ + i) % stripes_.size()].get();
    if (other->reads() < least->reads()) least = other;
  }
  next_ = (next_ + 1) % stripes_.size();
  return least;
}

void StripesEndpoint::Read(const RemotePart& part, uint64_t offset,
                           absl::Span<uint8_t> into, uint64_t cookie) {
  Stripe* const stripe = LeastBusy();
  stripe->AddRead();
  stripe->units()->Read(part, offset, into, cookie);
  Pump(stripe);
}

absl::StatusOr<memory::Payload> StripesEndpoint::Load(const RemoteRegion&) {
  return absl::UnimplementedError("tcp has no memory in common");
}

bool StripesEndpoint::IsDrained() {
  for (const auto& stripe : stripes_) {
    if (!stripe->units()->idle()) return false;
  }
  return true;
}

void StripesEndpoint::Pump(Stripe* stripe) {
  if (batches_ == 0) stripe->Send();
}

bool StripesEndpoint::HasInput() const {
  if (broken_) return false;
  if (has_more_ || has_failed_) return true;
  pollfd descriptor = {epoll_.get(), POLLIN, 0};
  return poll(&descriptor, 1, 0) == 1;
}

bool StripesEndpoint::Poll() {
  if (broken_) return false;
  polling_ = true;
  TakeEvents();
  bool any = false;
  BeginBatch();
  for (const auto& stripe : stripes_) {
    if (stripe->Receive(kBytesPerPoll)) any = true;
  }
  EndBatch();
  if (std::exchange(owes_writable_, false)) {
    any = true;
    events_->OnWritable();
  }
  polling_ = false;
  NoteReadable();
  if (!failure_.ok()) {
    // Delivers the packets that the peer sent before it closed, if possible.
    if (!first()->readable() || ++last_polls_ == kMostLastPolls) Break();
    return true;
  }
  // OnWritable() may have used up the credit, and sent everything since.
  if (owes_writable_) WakeOwner();
  return any;
}

void StripesEndpoint::Fail(const absl::Status& cause) {
  if (!failure_.ok()) return;
  failure_ = cause;
  has_failed_ = true;
}

void StripesEndpoint::Break() {
  broken_ = true;
  has_failed_ = false;
  has_more_ = false;
  for (const auto& stripe : stripes_) stripe->units()->OnClosed(failure_);
  events_->OnBroken(failure_);
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
