#include "transport/grpc/filters/accepted_paths.h"

#include <atomic>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/match.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace core {
namespace {

// The prefixes of the paths of calls that accept device slices. Never
// destroyed, because calls may outlive main().
class Accepted {
 public:
  static Accepted* Get() {
    static auto* const accepted = new Accepted;
    return accepted;
  }

  void Add(absl::string_view prefix) {
    base::MutexLock lock(&mu_);
    if (HasLocked(prefix)) return;
    prefixes_.emplace_back(prefix);
    any_.store(true, std::memory_order_release);
  }

  bool Has(absl::string_view path) {
    if (!any_.load(std::memory_order_acquire)) return false;
    base::MutexLock lock(&mu_);
    return HasLocked(path);
  }

 private:
  bool HasLocked(absl::string_view path) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    for (const std::string& prefix : prefixes_) {
      if (absl::StartsWith(path, prefix)) return true;
    }
    return false;
  }

  base::Mutex mu_;
  std::vector<std::string> prefixes_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> any_{false};
};

}  // namespace

void AcceptDeviceSlices(absl::string_view prefix) {
  Accepted::Get()->Add(prefix);
}

bool AcceptsDeviceSlices(absl::string_view path) {
  return Accepted::Get()->Has(path);
}

}  // namespace core
}  // namespace penstock
