// Determines if, and how, an RDMA device reaches memory of GPUs.

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

// The way to register memory.
enum class GpuWay {
  kDmabuf,   // by a descriptor that the GPU exports
  kPeermem,  // by its address, which a module of the kernel knows
};

// The use of registered memory.
enum class GpuUse {
  kSend,     // peers read it
  kReceive,  // READs of this side write to it
};

// Determines and remembers how an RDMA device can register a GPU's memory, for
// each use. Only a test shows which way works. The first test uses the first
// memory that the program sends or receives. A success is remembered as long as
// this object lives. A failure is remembered for a while, because the range may
// have been unusual, or a kernel module may be loaded later. Thread-safe.
class GpuReach {
 public:
  // Registers a range by `way`. If `is_trial`, also tests if the bytes arrive.
  using Attempt = absl::FunctionRef<absl::Status(GpuWay way, bool is_trial)>;

  // Starts without a known way. After some failures, tests nothing for `pause`;
  // from then on tests once per `pause`.
  explicit GpuReach(absl::Duration pause = absl::Minutes(1)) : pause_(pause) {}
  GpuReach(const GpuReach&) = delete;
  GpuReach& operator=(const GpuReach&) = delete;

  // Returns true if a way is known, or may be tried now. Does not block.
  bool may_be(GpuUse use) const;
  // Returns OK if may_be(), or else the reason.
  absl::Status Check(GpuUse use) const;
  // Returns the way that works, if it is known.
  absl::optional<GpuWay> way(GpuUse use) const;

  // Calls `attempt` with the way that works. If no way is known, tries the ways
  // one after another. Only one thread tries at a time. After three tries
  // without success, pauses. Returns the result of `attempt`, or the reason why
  // there is no way.
  absl::Status Register(GpuUse use, Attempt attempt);

  // Returns how the memory is reached, in words: "GPUDirect by dmabuf". Returns
  // an empty text while this is unknown. `with_windows` is true if peers can
  // read the memory.
  std::string Describe(bool with_windows) const;

 private:
  enum class State { kUnknown, kByDmabuf, kByPeermem };
  // The known result. Changed only under the lock. The first two members may be
  // read without the lock.
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
  // Returns true if no way has worked in several tries.
  bool IsGivenUpLocked(GpuUse use) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const absl::Duration pause_;
  mutable base::Mutex mu_;
  Known send_;
  Known receive_;
  // The error of the last range that could not be registered. Other ranges
  // could be registered.
  absl::Status last_failure_ ABSL_GUARDED_BY(mu_);
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_GPU_REACH_H_
