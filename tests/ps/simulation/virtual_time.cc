#include "tests/ps/simulation/virtual_time.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <limits>
#include <list>
#include <mutex>
#include <random>

namespace penstock::ps {
namespace {

using Nanoseconds = int64_t;
using ClockWait = int (*)(pthread_cond_t*, pthread_mutex_t*, clockid_t,
                          const timespec*);

constexpr Nanoseconds kSecond = 1000 * 1000 * 1000;

// A thread that waits until a time of the virtual clock.
struct Sleeper {
  pthread_cond_t* condition;
  Nanoseconds deadline;
};

std::atomic<Nanoseconds> g_skipped{0};

// All waiting threads. Never destroyed, because threads may wait until the end
// of the process.
struct Sleepers {
  std::mutex mu;
  std::list<Sleeper> all;
};
Sleepers& TheSleepers() {
  static auto* const sleepers = new Sleepers;
  return *sleepers;
}

struct Random {
  std::mutex mu;
  std::mt19937_64 numbers;
};
Random& TheRandom() {
  static auto* const random = new Random;
  return *random;
}

Nanoseconds Of(const timespec& time) {
  return time.tv_sec * kSecond + time.tv_nsec;
}
timespec Of(Nanoseconds time) { return {time / kSecond, time % kSecond}; }

Nanoseconds Now() {
  timespec now;
  syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return Of(now) + g_skipped;
}

// Waits like pthread_cond_clockwait() until a time of the virtual clock.
int WaitUntil(pthread_cond_t* condition, pthread_mutex_t* mutex,
              Nanoseconds deadline) {
  static const auto wait =
      reinterpret_cast<ClockWait>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  Sleepers& sleepers = TheSleepers();
  std::list<Sleeper>::iterator self;
  Nanoseconds skipped;
  {
    const std::lock_guard<std::mutex> lock(sleepers.mu);
    self = sleepers.all.insert(sleepers.all.end(), {condition, deadline});
    skipped = g_skipped;
  }
  const timespec end = Of(std::max(deadline - skipped, Nanoseconds{0}));
  const int result = wait(condition, mutex, CLOCK_MONOTONIC, &end);
  {
    const std::lock_guard<std::mutex> lock(sleepers.mu);
    sleepers.all.erase(self);
  }
  return result == 0 && Now() >= deadline ? ETIMEDOUT : result;
}

}  // namespace

bool SkipToNextDeadline(absl::Duration most) {
  Nanoseconds first = std::numeric_limits<Nanoseconds>::max();
  {
    Sleepers& sleepers = TheSleepers();
    const std::lock_guard<std::mutex> lock(sleepers.mu);
    for (const Sleeper& sleeper : sleepers.all) {
      first = std::min(first, sleeper.deadline);
    }
  }
  const Nanoseconds time = std::max(first - Now(), Nanoseconds{0});
  if (time >= absl::ToInt64Nanoseconds(most)) return false;
  SkipTime(absl::Nanoseconds(time));
  return true;
}

void SkipTime(absl::Duration time) {
  Sleepers& sleepers = TheSleepers();
  const std::lock_guard<std::mutex> lock(sleepers.mu);
  g_skipped += absl::ToInt64Nanoseconds(time);
  const Nanoseconds now = Now();
  for (const Sleeper& sleeper : sleepers.all) {
    if (sleeper.deadline <= now) pthread_cond_broadcast(sleeper.condition);
  }
}

void SeedRandomDevice(uint64_t seed) {
  const std::lock_guard<std::mutex> lock(TheRandom().mu);
  TheRandom().numbers.seed(seed);
}

}  // namespace penstock::ps

// Replace the functions of libc for this program and its libraries.
extern "C" int clock_gettime(clockid_t clock, timespec* time) noexcept {
  const int result = static_cast<int>(syscall(SYS_clock_gettime, clock, time));
  if (result != 0 || clock != CLOCK_MONOTONIC) return result;
  *time = penstock::ps::Of(penstock::ps::Of(*time) + penstock::ps::g_skipped);
  return 0;
}

extern "C" int pthread_cond_clockwait(pthread_cond_t* condition,
                                      pthread_mutex_t* mutex, clockid_t clock,
                                      const timespec* deadline) {
  using ClockWait = penstock::ps::ClockWait;
  if (clock == CLOCK_MONOTONIC) {
    return penstock::ps::WaitUntil(condition, mutex,
                                   penstock::ps::Of(*deadline));
  }
  static const auto wait =
      reinterpret_cast<ClockWait>(dlsym(RTLD_NEXT, "pthread_cond_clockwait"));
  return wait(condition, mutex, clock, deadline);
}

// Replaces nanosleep(), which absl::SleepFor() calls.
extern "C" int nanosleep(const timespec* time, timespec* /*left*/) {
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  const auto end = penstock::ps::Now() + penstock::ps::Of(*time);
  pthread_mutex_lock(&mutex);
  while (penstock::ps::Now() < end) {
    penstock::ps::WaitUntil(&condition, &mutex, end);
  }
  pthread_mutex_unlock(&mutex);
  return 0;
}

std::random_device::result_type std::random_device::_M_getval() {
  const std::lock_guard<std::mutex> lock(penstock::ps::TheRandom().mu);
  return static_cast<result_type>(penstock::ps::TheRandom().numbers());
}
