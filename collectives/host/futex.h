// Waits for words in shared memory.

#ifndef PENSTOCK_COLLECTIVES_HOST_FUTEX_H_
#define PENSTOCK_COLLECTIVES_HOST_FUTEX_H_

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <climits>
#include <cstdint>
#include <ctime>

namespace penstock::collectives {

// Sleeps while `word` is `value`, for at most 20 ms, so that the caller can
// check for faults. Works on memory that is mapped read-only.
inline void FutexWait(const std::atomic<uint32_t>& word, uint32_t value) {
  const timespec nap = {0, 20 * 1000 * 1000};
  syscall(SYS_futex, &word, FUTEX_WAIT, value, &nap, nullptr, 0);
}

inline void FutexWake(const std::atomic<uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_FUTEX_H_
