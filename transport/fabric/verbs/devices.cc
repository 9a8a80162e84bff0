#include "transport/fabric/verbs/devices.h"

#include <atomic>

#include "transport/base/mutex.h"
#include "transport/fabric/verbs/status.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Limits the inconclusive trials of a device. If a port is down or memory runs
// out, a trial proves nothing about the device and is repeated. Without a
// limit, connections would wait again and again for a device that hangs.
constexpr int kMaxTrials = 3;

// The rule for windows whose range is not enforced. Only tests change the rule.
std::atomic<RangeRule> range_rule{RangeRule::kEnforced};

bool IsProof(const absl::Status& status) {
  return status.ok() || absl::IsPermissionDenied(status) ||
         absl::IsUnimplemented(status) || absl::IsDataLoss(status);
}

}  // namespace

std::shared_ptr<Devices> Devices::For(Api* api) {
  struct Registry {
    base::Mutex mu;
    std::map<Api*, std::weak_ptr<Devices>> all ABSL_GUARDED_BY(mu);
  };
  static Registry* const registry = new Registry;
  base::MutexLock lock(&registry->mu);
  std::weak_ptr<Devices>& known = registry->all[api];
  std::shared_ptr<Devices> found = known.lock();
  if (found == nullptr) {
    found.reset(new Devices(api));
    known = found;
  }
  return found;
}

Devices::Devices(Api* api) : api_(api), fork_count_(progress::ForkCount()) {}

void Devices::SetRangeRuleForTest(RangeRule rule) { range_rule = rule; }

absl::StatusOr<WindowTrust> Devices::WindowsOf(ibv_context* device,
                                               uint8_t port) {
  ibv_device_attr attr = {};
  const int error = api_->QueryDevice(device, &attr);
  if (error != 0) return CallFailed(api_, error, "query", device);
  const RangeRule rule = range_rule;
  base::MutexLock lock(&mu_);
  Verdict& verdict = verdicts_[{device, attr.node_guid, rule}];
  if (!verdict.is_final) {
    verdict.trust = TryWindows(api_, device, port, kWindowTrialLimit, rule);
    ++verdict.trials;
    verdict.is_final =
        IsProof(verdict.trust.status()) || verdict.trials >= kMaxTrials;
  }
  return verdict.trust;
}

std::shared_ptr<GpuDirect> Devices::GpuDirectOf(ibv_context* device,
                                                uint64_t guid, uint8_t port) {
  base::MutexLock lock(&mu_);
  std::shared_ptr<GpuDirect>& known = gpu_direct_[{device, guid}];
  if (known == nullptr) known = std::make_shared<GpuDirect>(api_, port);
  return known;
}

absl::StatusOr<std::shared_ptr<Domain>> Devices::DomainOf(
    ibv_context* device, const Options& options, uint64_t locked_limit,
    const std::shared_ptr<GpuDirect>& gpu_direct) {
  if (fork_count_ != progress::ForkCount()) {
    return absl::FailedPreconditionError("the domain is the parent's");
  }
  base::MutexLock lock(&mu_);
  std::weak_ptr<Domain>& known = domains_[device];
  std::shared_ptr<Domain> found = known.lock();
  if (found != nullptr) return found;
  absl::StatusOr<std::shared_ptr<Domain>> made = Domain::Create(
      api_, device, options, /*with_windows=*/true, locked_limit, gpu_direct);
  if (made.ok()) known = *made;
  return made;
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
