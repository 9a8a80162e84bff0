#include "tests/transport/base/set_clock.h"

#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace penstock {
namespace {

constexpr int64_t kNanosPerSecond = 1000 * 1000 * 1000;

std::atomic<int64_t> g_offset_seconds{0};
std::atomic<int64_t> g_steady_offset_nanos{0};
// The time at which the steady clock has stopped, or zero.
std::atomic<int64_t> g_stopped_nanos{0};

int64_t SteadyNanos() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * kNanosPerSecond + time.tv_nsec;
}

}  // namespace

void SetClockBy(absl::Duration offset) {
  g_offset_seconds = absl::ToInt64Seconds(offset);
}

void MoveSteadyClockBy(absl::Duration offset) {
  g_steady_offset_nanos += absl::ToInt64Nanoseconds(offset);
}

void StopSteadyClock() {
  const int64_t now = SteadyNanos();
  g_steady_offset_nanos = 0;
  g_stopped_nanos = now;
}

}  // namespace penstock

// Replaces clock_gettime() of libc for this program and its libraries.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result != 0) return result;
  if (clock == CLOCK_REALTIME) time->tv_sec += penstock::g_offset_seconds;
  if (clock == CLOCK_MONOTONIC) {
    constexpr int64_t kSecond = penstock::kNanosPerSecond;
    const int64_t stopped = penstock::g_stopped_nanos;
    const int64_t nanos =
        (stopped != 0 ? stopped : time->tv_sec * kSecond + time->tv_nsec) +
        penstock::g_steady_offset_nanos;
    time->tv_sec = nanos / kSecond;
    time->tv_nsec = nanos % kSecond;
  }
  return 0;
}

// The same for gettimeofday(), with which Abseil computes its deadlines.
extern "C" int gettimeofday(timeval* time, void* /*zone*/) noexcept {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  time->tv_sec = now.tv_sec;
  time->tv_usec = now.tv_nsec / 1000;
  return 0;
}
