// The shared state of all connections of one fabric.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_SITE_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_SITE_H_

#include <cstdint>
#include <memory>

#include "transport/fabric/verbs/api.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/devices.h"
#include "transport/fabric/verbs/options.h"
#include "transport/fabric/verbs/supervisor.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

// The state that the parts of a fabric share. Copies share all of it except the
// options.
struct Site {
  Api* api = nullptr;
  progress::EventLoop* loop = nullptr;
  std::shared_ptr<CmChannel> channel;
  std::shared_ptr<Supervisor> supervisor;
  std::shared_ptr<Devices> devices;
  Options options;
  uint64_t locked_limit = 0;  // memory that the process may lock
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_SITE_H_
