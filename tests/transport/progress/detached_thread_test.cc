#include "transport/progress/detached_thread.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

#include "absl/status/status.h"

namespace penstock {
namespace progress {
namespace {

uint64_t AddressSpace() {
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// Starts a thread in a process that has no address space for the thread's
// stack, and prints the error.
[[noreturn]] void StartWithoutAddressSpace() {
  const rlim_t bytes = AddressSpace() + (1 << 20);
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
  const absl::Status status = StartDetachedThread(
      "a-thread", [](void*) -> void* { return nullptr; }, nullptr);
  fprintf(stderr, "%s\n", status.ToString().c_str());
  _exit(absl::IsResourceExhausted(status) ? 0 : 1);
}

TEST(DetachedThreadTest, ALackOfAddressSpaceIsNotTooManyThreads) {
  EXPECT_EXIT(StartWithoutAddressSpace(), testing::ExitedWithCode(0),
              "pthread_create of a-thread: .* limited to .*; raise ulimit -v");
}

}  // namespace
}  // namespace progress
}  // namespace penstock
