#include "tests/transport/base/set_clock.h"

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>

namespace penstock {
namespace {

std::atomic<int64_t> g_offset_seconds{0};
std::atomic<int64_t> g_steady_offset_nanos{0};

}  // namespace

void SetClockBy(absl::Duration offset) {
  g_offset_seconds = absl::ToInt64Seconds(offset);
}

void MoveSteadyClockBy(absl::Duration offset) {
  g_steady_offset_nanos += absl::ToInt64Nanoseconds(offset);
}

}  // namespace penstock

// Replaces clock_gettime() of libc for this program and its libraries.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result != 0) return result;
  if (clock == CLOCK_REALTIME) time->tv_sec += penstock::g_offset_seconds;
  if (clock == CLOCK_MONOTONIC) {
    constexpr int64_t kSecond = 1000 * 1000 * 1000;
    const int64_t nanos = time->tv_nsec + penstock::g_steady_offset_nanos;
    time->tv_sec += nanos / kSecond;
    time->tv_nsec = nanos % kSecond;
  }
  return 0;
}
