// What the driver in memory is made of.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_OBJECTS_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>

#include "tests/transport/device/fake_driver.h"
#include "transport/device/kernels/operation.h"

namespace penstock {
namespace device {
namespace abi {

struct ContextObject {
  int device;
  int retained;
};

// Work that a stream has before it: bytes to move, or another stream to wait
// for.
struct Work {
  std::function<void()> run;
  const char* begin = nullptr;  // of the pinned memory that it touches
  size_t bytes = 0;
  Stream wait_for = nullptr;
  uint64_t target = 0;
};

struct StreamObject {
  int device;
  std::deque<Work> queue;
  uint64_t queued = 0;
  uint64_t done = 0;
};

struct EventObject {
  int device;
  Stream stream = nullptr;
  uint64_t target = 0;
};

struct ModuleObject {
  int device;
};

struct FunctionObject {
  kernels::Operation operation;
  kernels::ElementType type;
};

}  // namespace abi

struct FakeDriver::Block {
  int device = 0;
  size_t bytes = 0;
  char* backing = nullptr;
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_OBJECTS_H_
