#include "transport/monitoring/close_in_child.h"

#include <pthread.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

namespace penstock {
namespace monitoring {
namespace {

// Caps the descriptors. They are in an array without a lock, because another
// thread might hold a lock during a fork. An element that is taken and not
// filled yet contains 0, and is skipped.
constexpr size_t kPlaces = 16;
std::array<std::atomic<int>, kPlaces> descriptors;
std::atomic<size_t> taken{0};

void CloseAll() {
  for (std::atomic<int>& place : descriptors) {
    const int fd = place.exchange(0);
    if (fd > 0) close(fd);
  }
}

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &CloseAll);

}  // namespace

void CloseInChild(int fd) {
  const size_t place = taken.fetch_add(1);
  if (place < kPlaces) descriptors[place] = fd;
}

}  // namespace monitoring
}  // namespace penstock
