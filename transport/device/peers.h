// Which devices reach each other's memory.

#ifndef PENSTOCK_TRANSPORT_DEVICE_PEERS_H_
#define PENSTOCK_TRANSPORT_DEVICE_PEERS_H_

#include <set>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"
#include "transport/device/device.h"

namespace penstock {
namespace device {

// The devices that one device writes to without going by way of the host.
// Thread-safe.
class Peers {
 public:
  // `device` outlives it.
  explicit Peers(Device* device) : device_(device) {}
  Peers(const Peers&) = delete;
  Peers& operator=(const Peers&) = delete;

  // Has the device reach `other`, if the machine lets it. Asks the driver once
  // for each `other`, and says nothing of a failure: the driver copies by way
  // of the host then, so nothing but time is lost.
  void Reach(Device* other);

 private:
  Device* const device_;
  base::Mutex mu_;  // held while the driver is asked
  std::set<Device*> asked_ ABSL_GUARDED_BY(mu_);
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_PEERS_H_
