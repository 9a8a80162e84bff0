// Whether an RDMA device reaches memory of GPUs, and how.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_REACH_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_REACH_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace fabric {
namespace verbs {

// How it is registered.
enum class GpuWay {
  kDmabuf,   // by a descriptor that the GPU exports
  kPeermem,  // by its address, which a module of the kernel knows
};

// What it is registered for.
enum class GpuUse {
  kSend,     // peers read it
  kReceive,  // READs of this side's come to lie in it
};

// Finds the way that works for each use, and remembers it. Nothing but a try
// tells, and there is nothing to try before the program has such memory to send
// or to receive into: so the first ranges are the tries. What they prove holds
// as long as this; that nothing works, for a while: the range may have been of
// an odd kind, or a module of the kernel comes later. Thread-safe.
class GpuReach {
 public:
  // Registers a range by `way`. If it `is_trial`, also finds out whether the
  // bytes come.
  using Attempt = absl::FunctionRef<absl::Status(GpuWay way, bool is_trial)>;

  // After some failures nothing is tried for `pause`, and then once for each.
  explicit GpuReach(absl::Duration pause = absl::Minutes(1)) : pause_(pause) {}
  GpuReach(const GpuReach&) = delete;
  GpuReach& operator=(const GpuReach&) = delete;

  // Returns whether a way is known, or is to be tried now. Does not block.
  bool may_be(GpuUse use) const;
  // Returns OK if it may be, or else why not.
  absl::Status Check(GpuUse use) const;
  // Returns the way that works, if it is known.
  absl::optional<GpuWay> way(GpuUse use) const;

  // Has `attempt` register by the way that works. As long as none is known,
  // tries one after the other, while no other thread tries; from the third time
  // on that none works, it pauses. Returns what the attempt did, or why there
  // is no way.
  absl::Status Register(GpuUse use, Attempt attempt);

  // Returns how the memory goes, for people: "GPUDirect by dmabuf". Empty as
  // long as that is not known. `with_windows`: whether peers are let in at all.
  std::string Describe(bool with_windows) const;

 private:
  enum class State { kUnknown, kByDmabuf, kByPeermem };
  // All under the lock, but that the first two are also read without it.
  struct Known {
    std::atomic<State> state{State::kUnknown};
    std::atomic<int64_t> refused_until{0};  // in ns of SteadyNow()
    int tries = 0;
    absl::Status why;  // of the last try
  };

  Known& known(GpuUse use) { return use == GpuUse::kSend ? send_ : receive_; }
  const Known& known(GpuUse use) const {
    return use == GpuUse::kSend ? send_ : receive_;
  }
  absl::Status TryLocked(GpuUse use, Attempt attempt)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether no way has worked so far, although that was not tried just once.
  bool IsGivenUpLocked(GpuUse use) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration pause_;
  mutable base::Mutex mu_;
  Known send_;
  Known receive_;
  // Of the last range that could not be registered although others can.
  absl::Status last_failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_REACH_H_
