#include "transport/fabric/tcp/stripes/endpoint.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

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

// Limits the bytes that one Poll() receives over all stripes, because other
// connections wait meanwhile. Each stripe gets an equal part.
constexpr size_t kBytesPerPoll = 1024 * 1024;

// The time between two checks if the peer's kernel has received everything. The
// kernel reports no event for this.
constexpr long kDrainLookNanoseconds = 2 * 1000 * 1000;

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
  // Breaks a silent connection after 10 seconds. gRPC's keepalive waits for 20
  // seconds by default, and would end the session, whose lifeline may be alive.
  const int on = 1, idle_seconds = 4, interval_seconds = 2, probes = 3;
  const int millis = 10 * 1000;
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
        this, stripes_.size(), sockets.size(), std::move(socket)));
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
  constexpr int kMostEvents = kMostStripes + 1;  // and the timer
  epoll_event events[kMostEvents];
  const int count = epoll_wait(epoll_.get(), events, kMostEvents, 0);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 >= stripes_.size()) continue;  // the timer
    const uint32_t input = events[i].events & ~static_cast<uint32_t>(EPOLLOUT);
    if (input != 0) {
      stripes_[events[i].data.u64]->OnInput(/*hung_up=*/input != EPOLLIN);
    }
  }
}

void StripesEndpoint::PollLater(Stripe* stripe) {
  if (polling_) {
    unfinished_ = stripe;
  } else {
    WakeOwner(stripe);
  }
}

void StripesEndpoint::WakeOwner(Stripe* stripe) {
  epoll_event event = {};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.u64 = stripe->index();
  // Modifies the watch, so that epoll reports the present state again. A socket
  // that has just accepted all output is writable, now or later.
  (void)epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, stripe->fd(), &event);
}

bool StripesEndpoint::StartDrainTimer() {
  if (!drain_timer_.valid()) {
    base::UniqueFd timer(
        timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC));
    epoll_event event = {};
    event.events = EPOLLIN | EPOLLET;
    event.data.u64 = stripes_.size();
    if (!timer.valid() ||
        epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, timer.get(), &event) != 0) {
      return false;
    }
    drain_timer_ = std::move(timer);
  }
  itimerspec once = {};
  once.it_value.tv_nsec = kDrainLookNanoseconds;
  return timerfd_settime(drain_timer_.get(), 0, &once, nullptr) == 0;
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

bool StripesEndpoint::Divert(uint64_t cookie) {
  for (const auto& stripe : stripes_) stripe->units()->Divert(cookie);
  return true;
}

// Waits until the peer's kernel has acknowledged everything. Otherwise the end
// of the lifeline could overtake the last packets, and the peer would not wait
// for them.
bool StripesEndpoint::IsDrained() {
  if (has_failed_) return false;  // Poll() reports the failure first
  for (const auto& stripe : stripes_) {
    if (!stripe->IsDrained()) return !StartDrainTimer();
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
  unfinished_ = nullptr;
  TakeEvents();
  bool any = false;
  BeginBatch();
  for (const auto& stripe : stripes_) {
    if (stripe->Receive(kBytesPerPoll / stripes_.size())) any = true;
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
  // Records unfinished output: OnWritable() may have sent more and used up the
  // credit again.
  if (owes_writable_) unfinished_ = first();
  if (unfinished_ != nullptr) WakeOwner(unfinished_);
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
  for (const auto& stripe : stripes_) stripe->units()->Break(failure_);
  events_->OnBroken(failure_);
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
