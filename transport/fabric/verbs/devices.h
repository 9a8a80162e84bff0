// The process's knowledge of its RDMA devices.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICES_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICES_H_

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>

#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/fabric/verbs/api.h"
#include "transport/fabric/verbs/domain.h"
#include "transport/fabric/verbs/gpu_direct.h"
#include "transport/fabric/verbs/options.h"
#include "transport/fabric/verbs/window_trial.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Caches, for each device, the trust in its windows, its access to GPUs, and
// the domain that its connections share. Thread-safe.
class Devices {
 public:
  // Returns the shared instance of all fabrics that use `api`. Makes one if
  // there is none.
  static std::shared_ptr<Devices> For(Api* api);
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // For tests only, before devices are used: sets the rule of later trials for
  // windows whose range is not enforced. Only code in tests/ calls this, and no
  // setting or environment variable of a program does.
  static void SetRangeRuleForTest(RangeRule rule);

  // Returns the trust in the device's windows, or in few words the reason why
  // they cannot be trusted. The first call tests the windows through `port`,
  // and blocks meanwhile (window_trial.h). A few later calls repeat an
  // inconclusive test.
  absl::StatusOr<WindowTrust> WindowsOf(ibv_context* device, uint8_t port);

  // Returns the access to GPUs of the device with this GUID. Tries access
  // through `port`, a port of the device, as given by the first call.
  std::shared_ptr<GpuDirect> GpuDirectOf(ibv_context* device, uint64_t guid,
                                         uint8_t port);

  // Returns the domain that the connections of a device with trusted windows
  // share. Makes the domain, with `options`, if there is none.
  absl::StatusOr<std::shared_ptr<Domain>> DomainOf(
      ibv_context* device, const Options& options, uint64_t locked_limit,
      const std::shared_ptr<GpuDirect>& gpu_direct);

 private:
  struct Verdict {
    absl::StatusOr<WindowTrust> trust;
    int trials = 0;
    bool is_final = false;
  };

  explicit Devices(Api* api);

  Api* const api_;
  const uint32_t fork_count_;
  base::Mutex mu_;
  // The verdicts by device. The key contains the GUID, because the pointer of a
  // closed device may be reused for another device. The key contains the rule,
  // because a test may change it.
  std::map<std::tuple<ibv_context*, uint64_t, RangeRule>, Verdict> verdicts_
      ABSL_GUARDED_BY(mu_);
  std::map<ibv_context*, std::weak_ptr<Domain>> domains_ ABSL_GUARDED_BY(mu_);
  std::map<std::pair<ibv_context*, uint64_t>, std::shared_ptr<GpuDirect>>
      gpu_direct_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_DEVICES_H_
