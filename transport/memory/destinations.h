// Memory of the program for receiving messages.

#ifndef PENSTOCK_TRANSPORT_MEMORY_DESTINATIONS_H_
#define PENSTOCK_TRANSPORT_MEMORY_DESTINATIONS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "transport/memory/stable_memory.h"

namespace penstock {
namespace memory {

class DeviceAccess;

// A range into which one part of a message may be received.
struct Destination {
  uint8_t* data = nullptr;
  size_t size = 0;
  // The access to memory of a device. Null for memory of the host. Code that
  // cannot write to the device must not use the range.
  DeviceAccess* device = nullptr;
};

// Memory into which a message is received, in several ranges, with a reference
// to the memory's owner. Receives one message at a time. Thread-safe.
class Destinations {
 public:
  // The time for which devices may keep the memory registered.
  enum class Registered {
    kForOneMessage,
    // Registered as long as this object lives, within the devices' budgets. Use
    // for memory that receives many messages, one after another.
    kForLife,
  };

  // Takes the ranges. `owner` keeps the ranges valid. Ignores a range that is
  // empty or overlaps an earlier range. If `anywhere` is true, or if a range is
  // on a device, the message may end up in any device memory.
  Destinations(const std::vector<Destination>& ranges,
               std::shared_ptr<const void> owner, Registered registered,
               bool anywhere = false);
  Destinations(const Destinations&) = delete;
  Destinations& operator=(const Destinations&) = delete;

  // Returns the usable ranges, sorted by size. Ranges of one size keep the
  // given order.
  const std::vector<Destination>& by_size() const { return by_size_; }

  // Returns true if the message may be in memory of devices.
  bool anywhere() const { return anywhere_; }

  // Returns the exclusive right to write to the memory, or null while somebody
  // else has the right. Releasing the last reference, on any thread, ends the
  // right. The right keeps `self` alive.
  static std::shared_ptr<const void> Take(std::shared_ptr<Destinations> self);
  // Returns true if somebody has the right to write. After false, the caller
  // sees all writes of earlier holders.
  bool is_taken() const { return taken_.load(std::memory_order_acquire); }

 private:
  class Taken;

  const std::shared_ptr<const void> owner_;
  const std::vector<Destination> by_size_;
  const bool anywhere_;
  std::vector<std::unique_ptr<StableMemory>> promises_;
  std::atomic<bool> taken_{false};
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_DESTINATIONS_H_
