// The devices of a fake network, and their events.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_DEVICE_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_DEVICE_H_

#include <infiniband/verbs.h>
#include <sys/socket.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/strings/string_view.h"
#include "tests/transport/fabric/verbs/fake/fake_objects.h"
#include "tests/transport/fabric/verbs/fake/fake_options.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Returns true if two addresses belong to one host. Ignores ports.
bool SameHost(const sockaddr* a, const sockaddr* b);

// The simulated devices. Functions that return an int return 0 or the error
// number. Not thread-safe.
class FakeDevices {
 public:
  static FakeDevice* Of(ibv_context* context) {
    return static_cast<FakeDevice*>(context);
  }

  FakeDevice* Add(DeviceOptions options);
  // Returns the device of this name, or null if there is none.
  FakeDevice* Find(absl::string_view name) const;
  FakeDevice* FindByAddress(const sockaddr* address) const;
  // Returns the device that would receive a packet which `from` sends to the
  // address, or null.
  FakeDevice* FindByRoute(const FakeDevice& from,
                          const ibv_ah_attr& address) const;
  const std::vector<std::unique_ptr<FakeDevice>>& all() const { return all_; }

  int QueryDevice(ibv_context* context, ibv_device_attr* attr) const;
  int QueryPort(ibv_context* context, uint8_t port, ibv_port_attr* attr) const;
  size_t QueryGidTable(ibv_context* context, ibv_gid_entry* entries,
                       size_t max_entries) const;

  // Queues an event of the device.
  void Report(ibv_context* context, ibv_event_type type,
              decltype(ibv_async_event::element) element = {});
  // Takes an event. Returns false if there is none.
  bool TakeAsync(ibv_context* context, ibv_async_event* event);
  // Drops queued events of `object`: a queue pair, completion queue, shared
  // receive queue or work queue.
  void ForgetAsync(ibv_context* context, const void* object);

 private:
  std::vector<std::unique_ptr<FakeDevice>> all_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_VERBS_FAKE_FAKE_DEVICE_H_
