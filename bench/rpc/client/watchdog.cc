#include "bench/rpc/client/watchdog.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace penstock {
namespace bench {
namespace {

constexpr std::chrono::seconds kLimit(15);

}  // namespace

Watchdog::Watchdog() : thread_([this] { Watch(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard<std::mutex> lock(mu_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::SetLabel(const std::string& label) {
  const std::lock_guard<std::mutex> lock(mu_);
  label_ = label;
  Progress();
}

void Watchdog::Watch() {
  std::unique_lock<std::mutex> lock(mu_);
  while (true) {
    const uint64_t before = progress_.load(std::memory_order_relaxed);
    if (wake_.wait_for(lock, kLimit, [this] { return stop_; })) return;
    if (progress_.load(std::memory_order_relaxed) != before) continue;
    std::fprintf(stderr, "rpc: %s: nothing was completed for 15 seconds\n",
                 label_.c_str());
    // Calls _exit(), which runs no destructors, because destructors could hang
    // as well. The server processes notice the end of this process.
    _exit(1);
  }
}

}  // namespace bench
}  // namespace penstock
