// A connection's completion queue, and how a sleeper hears of it.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_COMPLETIONS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_COMPLETIONS_H_

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/verbs/handles.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Completions are taken off the device's queue by whoever looks, and kept here
// until their owner takes them: the device itself cannot be asked whether there
// are any. Thread-safe but for Take() and ClearWakeup().
class Completions {
 public:
  static absl::StatusOr<std::unique_ptr<Completions>> Create(
      Api* api, ibv_context* device, int entries);
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  ~Completions();

  ibv_cq* queue() const { return queue_.get(); }

  // Whether Take() would find something.
  bool HasInput();
  // The oldest, at most `max`; returns how many, or negative where the device
  // has failed.
  int Take(ibv_wc* out, int max);

  // While armed, completions make one of wakeup_fds() readable. Whoever arms
  // looks at HasInput() once more.
  void SetArmed(bool armed);
  std::vector<int> wakeup_fds() const { return {channel_->fd, wake_.get()}; }
  // Makes the other one readable, until ClearWakeup().
  void Wake();
  // Arms again, if it was armed: so look at HasInput() afterwards.
  void ClearWakeup();

 private:
  static constexpr int kKept = 16;

  Completions(Api* api, CompletionChannel channel, CompletionQueue queue,
              base::UniqueFd wake);
  void RefillLocked();

  Api* const api_;
  CompletionChannel channel_;
  CompletionQueue queue_;
  const base::UniqueFd wake_;  // eventfd
  std::atomic<bool> woken_{false};
  std::atomic<bool> armed_{false};
  unsigned int unacknowledged_ = 0;  // events; acknowledging takes a lock

  std::mutex mu_;  // guards the rest
  ibv_wc kept_[kKept];
  int first_ = 0;
  std::atomic<int> count_{0};
  bool failed_ = false;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_COMPLETIONS_H_
