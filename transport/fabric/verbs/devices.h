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

// Caches facts about each device: whether its windows are trusted, how it
// reaches GPUs, and the domain that its connections share. Thread-safe.
class Devices {
 public:
  // Returns the shared instance of all fabrics that use `api`. Makes one if
  // there is none.
  static std::shared_ptr<Devices> For(Api* api);
  Devices(const Devices&) = delete;
  Devices& operator=(const Devices&) = delete;

  // Sets, for tests only, which failures of windows later trials tolerate. Call
  // before devices are used. No setting or environment variable reaches this
  // function.
  static void SetRangeRuleForTest(RangeRule rule);

  // Returns how far the device's windows are trusted, or in a few words the
  // reason why they cannot be trusted. The first call tests the windows through
  // `port`, and blocks meanwhile (window_trial.h). A few later calls repeat an
  // inconclusive test.
  absl::StatusOr<WindowTrust> WindowsOf(ibv_context* device, uint8_t port);

  // Returns the access to GPUs of the device with this GUID. The first call for
  // a device decides which `port` is used for trials.
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
  // The verdicts by device. The key also has the GUID, because a new device may
  // get the pointer of a closed one, and the rule, because a test may change
  // the rule.
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
