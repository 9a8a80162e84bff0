#include "transport/progress/fork_count.h"

#include <pthread.h>

#include <atomic>

namespace penstock {
namespace progress {
namespace {

std::atomic<uint32_t> fork_count{0};

void CountFork() { fork_count.fetch_add(1, std::memory_order_relaxed); }

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &CountFork);

}  // namespace

uint32_t ForkCount() { return fork_count.load(std::memory_order_relaxed); }

}  // namespace progress
}  // namespace penstock
