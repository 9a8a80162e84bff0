// What a process knows of its devices.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICES_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/verbs/api.h"
#include "transport/fabric/verbs/domain.h"
#include "transport/fabric/verbs/options.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Thread-safe.
class Devices {
 public:
  // One for all fabrics that use `api`, as long as there is one.
  static std::shared_ptr<Devices> For(Api* api);
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // OK if the device's windows can be trusted; else why not, in few words. They
  // are tried when that is first asked, through `port`, which blocks; see
  // window_trial.h. What does not prove anything is tried again, a few times.
  absl::Status WindowsOf(ibv_context* device, uint8_t port);

  // The domain that all connections of a device with such windows share, while
  // there is one; made with the first one's options.
  absl::StatusOr<std::shared_ptr<Domain>> DomainOf(ibv_context* device,
                                                   const Options& options,
                                                   uint64_t locked_limit);

 private:
  struct Verdict {
    absl::Status status;
    int trials = 0;
    bool is_final = false;
  };

  explicit Devices(Api* api);

  Api* const api_;
  const uint32_t fork_count_;
  std::mutex mu_;  // guards the rest
  // By device and GUID: another device may be opened where one was closed.
  std::map<std::pair<ibv_context*, uint64_t>, Verdict> verdicts_;
  std::map<ibv_context*, std::weak_ptr<Domain>> domains_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICES_H_
