#include "transport/fabric/shm/link.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <utility>

#include "absl/time/time.h"
#include "transport/base/steady_time.h"
#include "transport/progress/aside.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// The period of checks for returned loans while this side still lends. A peer
// returns a loan without ringing the doorbell, so a link that does not poll
// must check. The period grows if there are no new loans.
constexpr absl::Duration kFirstLook = absl::Milliseconds(5);
// The pause while too many segments wait to be unmapped. Without the pause, the
// loop would be woken again immediately, because the socket stays readable.
constexpr absl::Duration kTakeInPause = absl::Milliseconds(100);
// The period of checks for returned loans after the endpoint is gone.
constexpr absl::Duration kLingerPeriod = absl::Seconds(1);
// Limits the number of checks after the endpoint's end. This limits the time
// for which this side keeps device memory for a living peer that does not
// report closing it.
constexpr int kLingerLooks = 10;

// Returns the devices whose memory the two sides lend each other, or null.
memory::DeviceAccess* DevicesOf(const Sharing& sharing) {
  return sharing.peer_opens_devices ? sharing.devices : nullptr;
}

}  // namespace

Link::Link(PeerSocket socket, Segment control, PeerSegment peer_control,
           Sharing sharing, progress::EventLoop* loop)
    : socket_(std::move(socket)),
      control_(std::move(control)),
      peer_control_(std::move(peer_control)),
      sharing_(std::move(sharing)),
      loop_(loop),
      fork_count_(progress::ForkCount()),
      device_lender_(socket_.get(), DevicesOf(sharing_)),
      lender_(sharing_.arena, socket_.get(), peer_page(), &device_lender_),
      borrower_(socket_.get(), own_page(), DevicesOf(sharing_), &device_lender_,
                sharing_.MayPassDoorbells() ? &doorbell_ : nullptr) {}

Link::~Link() {
  if (IsForeign()) return;
  own_page()->closed.store(1, std::memory_order_release);  // if never used
  device_lender_.End();
}

void Link::End(Link* link) {
  if (link->IsForeign()) {
    delete link;
  } else {
    progress::RunAside(progress::Aside::kMemory, [link] { delete link; });
  }
}

absl::StatusOr<std::shared_ptr<Link>> Link::Create(PeerSocket socket,
                                                   Segment control,
                                                   PeerSegment peer_control,
                                                   Sharing sharing) {
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return loop.status();
  control.CloseFd();
  std::shared_ptr<Link> link(
      new Link(std::move(socket), std::move(control), std::move(peer_control),
               std::move(sharing), *loop),
      &Link::End);
  link->borrower_.Connect(link);
  absl::Status watched = link->Watch(EPOLLIN | EPOLLRDHUP);
  if (!watched.ok()) return watched;
  if (link->sharing_.peer_takes_doorbell) {
    link->doorbell_.Offer(link->socket_.get());
  }
  link->sharing_.arena->AddWatcher(link);
  return link;
}

// Watches the socket for `events`. The event loop's callback keeps this link
// alive.
absl::Status Link::Watch(uint32_t events) {
  std::shared_ptr<Link> self = shared_from_this();
  absl::StatusOr<progress::EventLoop::Id> watch =
      loop_->Watch(socket_.get(), events,
                   [self](uint32_t pending) { self->OnSocket(pending); });
  if (!watch.ok()) return watch.status();
  watch_.store(*watch);
  return absl::OkStatus();
}

void Link::OnSocket(uint32_t events) {
  if ((events & ~uint32_t{EPOLLIN}) != 0) {
    return OnHangUp((events & (EPOLLHUP | EPOLLERR)) != 0);
  }
  // Leaves the messages to the next call if Create() has not stored the watch's
  // id yet.
  if (watch_.load() != 0) TakeIn();
}

void Link::TakeIn() {
  const Borrower::TakenIn taken = borrower_.TakeIn();
  if (!borrower_.Answer()) WatchLoans();
  if (own_page()->closed.load(std::memory_order_relaxed) != 0) {
    (void)LeaveIfAllIsBack();
  }
  if (taken == Borrower::TakenIn::kSome) return;
  loop_->SetEvents(watch_.load(), EPOLLRDHUP);
  if (taken == Borrower::TakenIn::kNever) {
    // Stops lending device memory. If the endpoint needs the message that was
    // refused, Borrower::Find() reports the reason.
    return device_lender_.StopUnheard();
  }
  std::weak_ptr<Link> weak = shared_from_this();
  loop_->RunAfter(kTakeInPause, [weak] {
    std::shared_ptr<Link> link = weak.lock();
    if (link != nullptr) {
      link->loop_->SetEvents(link->watch_.load(), EPOLLIN | EPOLLRDHUP);
    }
  });
}

void Link::OnGivenBack(uint32_t segment_id) {
  if (!IsForeign()) lender_.TakeBack(segment_id);
}

void Link::ReclaimLoans() {
  if (!IsForeign()) (void)lender_.Reclaim();  // a poll reports errors
}

bool Link::PeerIsGone() const {
  return hung_up_.load(std::memory_order_acquire) || PeerHasClosed();
}

bool Link::PeerHasClosed() const {
  return peer_page()->closed.load(std::memory_order_acquire) != 0;
}

void Link::StopReceiving() {
  if (IsForeign()) return;
  own_page()->closed.store(1, std::memory_order_release);
  // Orders the flag before the caller's check of the ring. Pairs with the
  // peer's fence after its write (TakeDoorbellRequest()).
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

bool Link::IsForeign() const { return fork_count_ != progress::ForkCount(); }

void Link::OnHangUp(bool is_dead) {
  lender_.EndAll();
  hung_up_.store(true, std::memory_order_release);
  // The endpoint has input now, and its owner may sleep.
  doorbell_.WakeOwner();
  if (is_dead) {
    peer_is_dead_ = true;
    MayLetGo();
  }
  // Leaves the event loop. If Create() has not stored the watch's id yet, the
  // next call leaves.
  Leave();
}

// Unmaps the peer's segments if possible. Waits until the endpoint is gone,
// because the endpoint may still read messages from before the peer's death.
void Link::MayLetGo() {
  if (peer_is_dead_ && is_closed_) borrower_.LetGo();
}

void Link::Leave() {
  // Sets the flag before calling IsReading(). A thread that ends reading later
  // then sees the flag.
  has_left_ = true;
  if (!peer_is_dead_ && IsReading()) {
    loop_->SetEvents(watch_.load(), 0);
  } else {
    loop_->Unwatch(watch_.load());
  }
}

bool Link::IsReading() const {
  base::MutexLock lock(&mu_);
  return !reading_.expired();
}

void Link::Close() {
  if (IsForeign()) return;
  own_page()->closed.store(1, std::memory_order_release);
  is_closed_ = true;
  borrower_.CloseDevices();
  MayLetGo();
  Linger();
}

void Link::Linger() {
  // Ignores an error: a peer that counts wrongly keeps its loans until it hangs
  // up.
  (void)lender_.Reclaim();
  device_lender_.TakeBackUnused(kLingerLooks);
  if (LeaveIfAllIsBack()) return;
  std::weak_ptr<Link> weak = shared_from_this();
  loop_->RunAfter(kLingerPeriod, [weak] {
    if (std::shared_ptr<Link> link = weak.lock()) link->Linger();
  });
}

bool Link::LeaveIfAllIsBack() {
  if (HasLoans()) return false;
  Leave();
  return true;
}

std::shared_ptr<ReadingShare> Link::StartReading() {
  auto reading = std::make_shared<ReadingShare>(shared_from_this());
  base::MutexLock lock(&mu_);
  reading_ = reading;
  return reading;
}

std::shared_ptr<const void> Link::KeepReading() {
  base::MutexLock lock(&mu_);
  return reading_.lock();
}

void Link::OnClosed(uint32_t id) {
  if (!borrower_.OnClosed(id)) WatchLoans();
}

void Link::WatchLoans() {
  has_lent_.store(true, std::memory_order_relaxed);
  if (IsForeign() || looks_.exchange(true)) return;
  LookLater(kFirstLook);
}

// Schedules the next check. All links check at the same times, so that one
// wake-up of the loop suffices.
void Link::LookLater(absl::Duration period) {
  const absl::Duration past =
      (base::SteadyNow() - absl::UnixEpoch()) % kFirstLook;
  std::weak_ptr<Link> weak = shared_from_this();
  loop_->RunAfter(period - past, [weak, period] {
    if (std::shared_ptr<Link> link = weak.lock()) link->LookForReturns(period);
  });
}

void Link::LookForReturns(absl::Duration period) {
  const bool has_lent = has_lent_.exchange(false, std::memory_order_relaxed);
  (void)lender_.Reclaim();  // a poll reports errors
  device_lender_.TakeBackIdle(base::SteadyNow());
  const bool answered = borrower_.Answer();
  // Checks once more if memory was lent meanwhile, even if all loans have been
  // returned. Otherwise a busy link would start the checks again and again, and
  // wake the loop's thread each time.
  if (has_lent || HasLoans() || !answered) {
    return LookLater(has_lent ? kFirstLook
                              : std::min(period * 2, kLingerPeriod));
  }
  looks_ = false;
  // Checks again: while looks_ was true, WatchLoans() scheduled nothing.
  if (HasLoans() || has_lent_.load(std::memory_order_relaxed)) WatchLoans();
}

void Link::EndReading() {
  if (IsForeign()) return;
  shutdown(socket_.get(), SHUT_WR);
  if (has_left_) loop_->Unwatch(watch_.load());
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
