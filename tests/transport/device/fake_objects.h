// The objects of the simulated driver.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_OBJECTS_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_OBJECTS_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "tests/transport/device/fake_driver.h"
#include "transport/device/kernels/operation.h"

namespace penstock {
namespace device {
namespace abi {

struct ContextObject {
  int device;
  int retained;
};

// A piece of work in a stream's queue: bytes to move, or another stream to wait
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
  bool is_asked_for = false;  // queried by EventQuery()
};

struct ModuleObject {
  int device;
};

struct FunctionObject {
  kernels::Operation operation;
  kernels::ElementType type;
};

}  // namespace abi

// The CPU's view of device memory. Lives as long as any simulated process holds
// the memory.
using Behind = std::shared_ptr<char>;

struct FakeDriver::Block {
  int device = 0;
  size_t bytes = 0;
  Behind backing;
  uint64_t id = 0;
  // For own memory, the handle that other processes open. For opened memory,
  // the handle of the owner's allocation. Empty without a handle.
  std::string handle;
  int opened = 0;  // for another process's memory: number of opens
};

// Memory that one driver has shared with other drivers of this process.
struct SharedMemory {
  const FakeDriver* owner;
  abi::Address address;
  int hardware;
  size_t bytes;
  Behind backing;
  int opened = 0;  // number of drivers that have it open
};

// All shared memory. Thread-safe. Never destroyed.
class SharedMemories {
 public:
  static SharedMemories* Get();

  // Returns the handle of the added memory.
  std::string Add(const SharedMemory& memory);
  // Opens memory by its handle. Returns false if there is none.
  bool Open(const std::string& handle, SharedMemory* memory);
  void Close(const std::string& handle);
  // Returns the number of drivers that still have the memory open.
  int Remove(const std::string& handle);
  void RemoveAllOf(const FakeDriver* owner);

 private:
  std::mutex mu_;
  uint64_t last_ = 0;
  std::map<std::string, SharedMemory> memories_;
};

// Returns new memory of this process, with `access` of mmap().
char* MapMemory(size_t bytes, int access);

// Returns an id that no block of any driver has had.
uint64_t NewBlockId();

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_FAKE_OBJECTS_H_
