// Memory of the program's that messages are to be received into.

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

// A range that one part of a message may be received into.
struct Destination {
  uint8_t* data = nullptr;
  size_t size = 0;
  // What reaches memory of a device's; null: it is the host's. Who cannot write
  // there leaves it alone.
  DeviceAccess* device = nullptr;
};

// The destinations of one message at a time, and a share in what owns them.
// Thread-safe.
class Destinations {
 public:
  // How long devices may keep the memory registered.
  enum class Registered {
    kForOneMessage,
    // As long as this lives, within the devices' budgets: for memory that many
    // messages are received into, one after another.
    kForLife,
  };

  // The ranges stay valid as long as `owner` is held. One that is empty, or
  // overlaps one before it, is never used. `anywhere` says that the message may
  // lie in any memory of devices, as it may where a range is a device's.
  Destinations(const std::vector<Destination>& ranges,
               std::shared_ptr<const void> owner, Registered registered,
               bool anywhere = false);
  Destinations(const Destinations&) = delete;
  Destinations& operator=(const Destinations&) = delete;

  // Those that may be used, by size; of one size, in the order given.
  const std::vector<Destination>& by_size() const { return by_size_; }

  // Whether the message may lie in memory of devices.
  bool anywhere() const { return anywhere_; }

  // Returns the right to write to the memory, which ends with its last share,
  // on any thread. Null while somebody has it. Keeps `self`.
  static std::shared_ptr<const void> Take(std::shared_ptr<Destinations> self);
  // Whether somebody has that right. If not, all that they wrote is here.
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
