// A library for LD_PRELOAD, before libgrpc. Counts the batches of operations
// that the process starts, in the file that GRPC_QPS_COUNTER names. An async
// reader of a stream starts one batch per message, so the count shows how many
// messages were read. gRPC's benchmark counts the messages that were sent
// instead.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

using Counter = std::atomic<uint64_t>;
using StartBatch = int (*)(void* call, const void* ops, size_t count, void* tag,
                           void* reserved);

// Maps the file of the counter into memory, and returns the counter. The file
// must exist and be large enough.
Counter* MapCounter() {
  const int fd = open(std::getenv("GRPC_QPS_COUNTER"), O_RDWR | O_CLOEXEC);
  void* const memory =
      mmap(nullptr, sizeof(Counter), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (fd < 0 || memory == MAP_FAILED) std::abort();
  close(fd);
  return static_cast<Counter*>(memory);
}

}  // namespace

extern "C" int grpc_call_start_batch(void* call, const void* ops, size_t count,
                                     void* tag, void* reserved) {
  static Counter* const counter = MapCounter();
  static const auto next =
      reinterpret_cast<StartBatch>(dlsym(RTLD_NEXT, "grpc_call_start_batch"));
  counter->fetch_add(1, std::memory_order_relaxed);
  return next(call, ops, count, tag, reserved);
}
