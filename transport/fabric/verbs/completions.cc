#include "transport/fabric/verbs/completions.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "transport/base/status_util.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// The number of events that are acknowledged together, because each
// acknowledgement takes a lock of the library.
constexpr unsigned int kEventsPerAcknowledgement = 64;

}  // namespace

absl::StatusOr<std::unique_ptr<Completions>> Completions::Create(
    Api* api, ibv_context* device, int entries) {
  absl::StatusOr<CompletionChannel> channel = CreateChannel(api, device);
  if (!channel.ok()) return channel.status();
  absl::StatusOr<CompletionQueue> queue =
      CreateCq(api, device, entries, channel->get());
  if (!queue.ok()) return queue.status();
  base::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake.get() < 0) {
    return base::ErrnoStatus(errno, "make a descriptor for completions");
  }
  return std::unique_ptr<Completions>(new Completions(
      api, *std::move(channel), *std::move(queue), std::move(wake)));
}

Completions::Completions(Api* api, CompletionChannel channel,
                         CompletionQueue queue, base::UniqueFd wake)
    : api_(api),
      channel_(std::move(channel)),
      queue_(std::move(queue)),
      wake_(std::move(wake)) {}

// Acknowledges all events, because destroying the queue waits for
// unacknowledged ones.
Completions::~Completions() {
  armed_ = false;
  ibv_cq* queue;
  void* context;
  while (api_->GetCqEvent(channel_.get(), &queue, &context) == 0) {
    ++unacknowledged_;
  }
  if (unacknowledged_ > 0) api_->AckCqEvents(queue_.get(), unacknowledged_);
}

void Completions::RefillLocked() {
  if (count_.load(std::memory_order_relaxed) > 0 || failed_) return;
  first_ = 0;
  const int polled = api_->PollCq(queue_.get(), kKept, kept_);
  failed_ = polled < 0;
  count_.store(std::max(polled, 0), std::memory_order_release);
}

bool Completions::HasInput() {
  // Leaves the completions to the other thread that holds the lock: this thread
  // is checking for completions, or taking them.
  if (!mu_.TryLock()) return true;
  RefillLocked();
  const bool any = failed_ || count_.load(std::memory_order_relaxed) > 0;
  mu_.Unlock();
  return any;
}

int Completions::Take(ibv_wc* out, int max) {
  base::MutexLock lock(&mu_);
  int taken = 0;
  while (taken < max) {
    RefillLocked();
    const int count = count_.load(std::memory_order_relaxed);
    const int part = std::min(count, max - taken);
    if (part == 0) break;
    std::copy_n(kept_ + first_, part, out + taken);
    first_ += part;
    taken += part;
    count_.store(count - part, std::memory_order_release);
    // Stops if the device returned fewer than kKept completions, because it had
    // no more.
    if (first_ < kKept) break;
  }
  return taken == 0 && failed_ ? -1 : taken;
}

void Completions::SetArmed(bool armed) {
  armed_.store(armed, std::memory_order_relaxed);
  if (armed) {
    armings_.fetch_add(1, std::memory_order_relaxed);
    (void)api_->ReqNotifyCq(queue_.get(), 0);
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

void Completions::Wake() {
  woken_.store(true);
  const uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

void Completions::ClearWakeup() {
  if (woken_.exchange(false)) {
    uint64_t count;
    (void)!read(wake_.get(), &count, sizeof count);
  }
  if (TakeEvents() && armed_.load(std::memory_order_relaxed)) SetArmed(true);
}

// Reads all events from the channel. epoll may announce several of these events
// only once, so an event that stays might never be announced again. Asks for at
// most as many events as there were armings, because each arming causes at most
// one event. Asking in vain costs as much as taking an event.
bool Completions::TakeEvents() {
  bool any = false;
  int armings = armings_.load(std::memory_order_relaxed);
  while (armings > 0) {
    ibv_cq* queue;
    void* context;
    if (api_->GetCqEvent(channel_.get(), &queue, &context) != 0) {
      // Resets the count to one arming. Armings that no completion has answered
      // count as one in the device.
      armings_.fetch_sub(armings - 1, std::memory_order_relaxed);
      break;
    }
    any = true;
    armings = armings_.fetch_sub(1, std::memory_order_relaxed) - 1;
    if (++unacknowledged_ == kEventsPerAcknowledgement) {
      api_->AckCqEvents(queue_.get(), unacknowledged_);
      unacknowledged_ = 0;
    }
  }
  return any;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
