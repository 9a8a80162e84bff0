// The shared memory of ps_server, from which workers on the same host read
// values in place.

#ifndef PENSTOCK_PS_SHARED_POOL_H_
#define PENSTOCK_PS_SHARED_POOL_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "penstock/allocator.h"

namespace penstock::ps {

// Shared memory for workers on this host, for tensor::PoolAllocator. Values
// that do not fit are sent over TCP. The first such value is logged, because
// this is otherwise only visible as lost time.
struct SharedPool {
  static penstock::Allocator::Buffer Allocate(size_t bytes);
};

// A limit of shared memory, and whether it is too low.
struct SharedLimit {
  uint64_t bytes = 0;
  bool is_short = false;  // `usable` is too small for all values
};

// Returns the limit for a server with `values` bytes of dense values: `least`
// plus twice `values`, because each value has a next version. The limit is at
// most three quarters of `usable`, but at least `least`.
SharedLimit LimitFor(uint64_t values, uint64_t least, uint64_t usable);

// Returns a function that makes room in SharedPool for the dense values of a
// model, and logs to `log`. The function takes the bytes of the values. An
// explicit PENSTOCK_SHM_ARENA_MIB takes precedence.
std::function<void(uint64_t values)> MakeSharedRoom(
    uint64_t usable, std::function<void(const std::string&)> log);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARED_POOL_H_
