#include "transport/grpc/input_poller.h"

#include <poll.h>

#include <atomic>
#include <cstdint>
#include <utility>

#include "transport/progress/fork_count.h"

namespace penstock {
namespace core {
namespace {

// The number of checks without input after which polling a socket ends. A check
// takes less than a microsecond, so this takes longer than the longest spin.
constexpr int kQuietLooks = 2048;

// Caps the polled sockets of the process. One round of checks of that many
// sockets takes some 20 us. Other sockets are watched only by epoll.
constexpr int kMostSockets = 32;

std::atomic<int> g_sockets{0};

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
    const int looks = looks_.load(std::memory_order_relaxed);
    if (looks >= kQuietLooks) return true;
    pollfd socket = {fd_, POLLIN, 0};
    const bool any = poll(&socket, 1, /*timeout=*/0) > 0;
    looks_.store(any ? 0 : looks + 1, std::memory_order_relaxed);
    return any;
  }
  void SetArmed(bool) override {}
  bool IsReported() const override { return true; }

  bool is_quiet() const {
    return looks_.load(std::memory_order_relaxed) >= kQuietLooks;
  }

 private:
  const uint32_t fork_count_ = progress::ForkCount();
  const int fd_;
  const Receive receive_;
  // The checks since the last input. Concurrent checks may count as one.
  mutable std::atomic<int> looks_{0};
};

void InputPoller::Start(int fd, Receive receive) {
  Stop();
  if (g_sockets.fetch_add(1, std::memory_order_relaxed) >= kMostSockets) {
    g_sockets.fetch_sub(1, std::memory_order_relaxed);
    return;
  }
  socket_ = std::make_shared<PolledSocket>(fd, std::move(receive));
  slot_ = progress::PollSet::Get()->Add(socket_);
}

void InputPoller::Stop() {
  if (socket_ == nullptr) return;
  progress::PollSet::Get()->Remove(slot_);
  socket_ = nullptr;
  g_sockets.fetch_sub(1, std::memory_order_relaxed);
}

bool InputPoller::is_quiet() const { return socket_->is_quiet(); }

}  // namespace core
}  // namespace penstock
