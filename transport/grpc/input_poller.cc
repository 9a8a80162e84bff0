#include "transport/grpc/input_poller.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <utility>

#include "absl/time/time.h"
#include "transport/base/per_process.h"
#include "transport/base/steady_time.h"
#include "transport/grpc/polling/polling_mode.h"
#include "transport/progress/fork_count.h"
#include "transport/progress/spin_policy.h"

namespace penstock {
namespace core {
namespace {

// The time, in nanoseconds, of polling without input after which the polling of
// a socket ends. Longer than the longest spin.
constexpr int64_t kQuietNanos = 1000 * 1000;
static_assert(kQuietNanos > progress::SpinPolicy::kMaxNanos, "");

// Limits the time between two polls of a socket that counts as polling, in
// nanoseconds. Longer than a round of polls of all sockets. Longer gaps mean
// that the threads sleep.
constexpr int64_t kRoundNanos = 50 * 1000;

// Caps the polled sockets of the process. One round of checks of that many
// sockets takes some 20 us. Other sockets are watched only by epoll.
constexpr int kMostSockets = 32;

struct PolledSockets {
  base::Places places;
};

}  // namespace

class InputPoller::PolledSocket : public progress::Pollable {
 public:
  PolledSocket(int fd, Receive receive)
      : fd_(fd), receive_(std::move(receive)) {}

  bool Poll() override { return receive_(); }
  // Also returns true if the socket has become quiet, so that the next Poll()
  // removes it.
  bool HasInput() const override {
    if (fork_count_ != progress::ForkCount()) return false;
    pollfd socket = {fd_, POLLIN, 0};
    if (poll(&socket, 1, /*timeout=*/0) > 0) {
      in_vain_.store(0, std::memory_order_relaxed);
      return true;
    }
    CountLook();
    return is_quiet();
  }
  void SetArmed(bool) override {}
  bool IsReported() const override { return true; }

  bool is_quiet() const {
    return in_vain_.load(std::memory_order_relaxed) >= kQuietNanos;
  }

 private:
  // Adds the time since the last poll. The spins of a thread yield, so the time
  // is not exact.
  void CountLook() const {
    const int64_t now = absl::ToUnixNanos(base::SteadyNow());
    const int64_t last = looked_.exchange(now, std::memory_order_relaxed);
    const int64_t took = std::max<int64_t>(now - last, 0);
    in_vain_.store(
        in_vain_.load(std::memory_order_relaxed) + std::min(took, kRoundNanos),
        std::memory_order_relaxed);
  }

  const uint32_t fork_count_ = progress::ForkCount();
  const int fd_;
  const Receive receive_;
  // The thread that has taken the socket's slot in the PollSet writes these.
  mutable std::atomic<int64_t> looked_{0};   // the time of the last poll
  mutable std::atomic<int64_t> in_vain_{0};  // time of polls without input
};

bool InputPoller::TakePlace() {
  if (PollingModeOfProcess() == progress::PollingMode::kEvent) return false;
  place_ = base::PerProcess<PolledSockets>::Get()->places.Take(kMostSockets);
  return place_ != nullptr;
}

void InputPoller::Start(int fd, Receive receive) {
  socket_ = std::make_shared<PolledSocket>(fd, std::move(receive));
  slot_ = progress::PollSet::Get()->Add(socket_);
}

void InputPoller::Stop() {
  place_ = nullptr;
  if (socket_ == nullptr) return;
  progress::PollSet::Get()->Remove(slot_);
  socket_ = nullptr;
}

bool InputPoller::is_quiet() const { return socket_->is_quiet(); }

}  // namespace core
}  // namespace penstock
