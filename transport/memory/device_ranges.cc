#include "transport/memory/device_ranges.h"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <utility>
#include <vector>

#include "transport/base/mutex.h"

namespace penstock {
namespace memory {

// All current declarations, by the begin of their ranges.
class DeviceRange::Registry {
 public:
  // Returns the process's registry. Never destroyed: slices may outlive main().
  static Registry* Get() {
    static auto* const registry = [] {
      auto* const made = new Registry;
      // Holds the lock across a fork. Otherwise a child might find the lock
      // held forever by a thread of the parent.
      pthread_atfork(&Registry::BeforeFork, &Registry::AfterFork,
                     &Registry::AfterFork);
      return made;
    }();
    return registry;
  }

  void Add(const DeviceRange* range) {
    base::MutexLock lock(&mu_);
    const auto behind =
        std::upper_bound(ranges_.begin(), ranges_.end(), range,
                         [](const DeviceRange* a, const DeviceRange* b) {
                           return a->range_.data() < b->range_.data();
                         });
    ranges_.insert(behind, range);
    longest_ = std::max(longest_, range->range_.size());
    count_.store(ranges_.size(), std::memory_order_release);
  }

  void Remove(const DeviceRange* range) {
    base::MutexLock lock(&mu_);
    ranges_.erase(std::find(ranges_.begin(), ranges_.end(), range));
    if (ranges_.empty()) longest_ = 0;
    count_.store(ranges_.size(), std::memory_order_release);
  }

  bool empty() const { return count_.load(std::memory_order_acquire) == 0; }

  // Calls `visit` for each range that overlaps [data, data + size).
  template <typename Visit>
  void ForEach(const uint8_t* data, size_t size, Visit visit) {
    base::MutexLock lock(&mu_);
    const auto end =
        std::lower_bound(ranges_.begin(), ranges_.end(), data + size,
                         [](const DeviceRange* range, const uint8_t* address) {
                           return range->range_.data() < address;
                         });
    for (auto it = end; it != ranges_.begin();) {
      const absl::Span<const uint8_t> range = (*--it)->range_;
      // Stops, because no earlier range reaches `data`.
      if (range.data() + longest_ <= data) return;
      if (range.data() + range.size() > data) visit(**it);
    }
  }

 private:
  static const bool is_made_;

  static void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { Get()->mu_.Lock(); }
  static void AfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Get()->mu_.Unlock();
  }

  base::Mutex mu_;
  // The ranges, sorted by address. A vector is fast enough, because there are
  // only as many ranges as messages in flight.
  std::vector<const DeviceRange*> ranges_ ABSL_GUARDED_BY(mu_);
  size_t longest_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<size_t> count_{0};
};

// Registers before main(), for the reason in base::PerProcess.
const bool DeviceRange::Registry::is_made_ = Get() != nullptr;

DeviceRange::DeviceRange(absl::Span<const uint8_t> range, DeviceAccess* access,
                         Poll poll)
    : range_(range),
      access_(access),
      poll_(poll == nullptr ? nullptr
                            : std::make_shared<const Poll>(std::move(poll))) {
  Registry::Get()->Add(this);
}

DeviceRange::~DeviceRange() { Registry::Get()->Remove(this); }

DeviceAccess* FindDevice(const void* data) {
  DeviceRange::Registry* const registry = DeviceRange::Registry::Get();
  if (registry->empty()) return nullptr;
  DeviceAccess* found = nullptr;
  registry->ForEach(
      static_cast<const uint8_t*>(data), 1,
      [&found](const DeviceRange& range) { found = range.access_; });
  return found;
}

absl::optional<absl::Status> PollDevice(absl::Span<const uint8_t> range) {
  std::vector<std::shared_ptr<const DeviceRange::Poll>> all;
  DeviceRange::Registry::Get()->ForEach(range.data(), range.size(),
                                        [&all](const DeviceRange& one) {
                                          if (one.poll_ != nullptr)
                                            all.push_back(one.poll_);
                                        });
  for (const auto& poll : all) {
    absl::optional<absl::Status> status = (*poll)();
    if (!status.has_value() || !status->ok()) return status;
  }
  return absl::OkStatus();
}

namespace {

struct OfProcess {
  base::Mutex mu;
  DeviceAccess* access ABSL_GUARDED_BY(mu) = nullptr;
  bool is_permitted ABSL_GUARDED_BY(mu) = false;
  bool is_relied_on ABSL_GUARDED_BY(mu) = false;

  static OfProcess* Get() {
    static auto* const of_process = new OfProcess;
    return of_process;
  }
};

}  // namespace

void PermitDevices() {
  // Creates the registry before gRPC registers its fork handler. The registry's
  // handler then runs after gRPC's, which waits for threads that may look up a
  // range.
  DeviceRange::Registry::Get();
  OfProcess* const process = OfProcess::Get();
  base::MutexLock lock(&process->mu);
  process->is_permitted = true;
}

absl::Status SetDevicesOfProcess(DeviceAccess* access) {
  OfProcess* const process = OfProcess::Get();
  base::MutexLock lock(&process->mu);
  if (process->access == access) return absl::OkStatus();
  if (process->access != nullptr) {
    return absl::AlreadyExistsError("other devices were named before");
  }
  if (!process->is_permitted) {
    return absl::FailedPreconditionError(
        "this program has no transport that sends from the memory of devices");
  }
  if (process->is_relied_on) {
    return absl::FailedPreconditionError(
        "a channel or a server was made before the devices were named; name "
        "them first, to send from their memory without copies to the host");
  }
  process->access = access;
  return absl::OkStatus();
}

DeviceAccess* DevicesOfProcess() {
  OfProcess* const process = OfProcess::Get();
  base::MutexLock lock(&process->mu);
  return process->access;
}

bool RelyOnNoDevices() {
  OfProcess* const process = OfProcess::Get();
  base::MutexLock lock(&process->mu);
  if (process->access != nullptr) return false;
  process->is_relied_on = true;
  return true;
}

}  // namespace memory
}  // namespace penstock
