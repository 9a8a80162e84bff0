// A connection's completion queue, and the descriptors that wake sleeping
// threads.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_COMPLETIONS_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_COMPLETIONS_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/verbs/handles.h"

namespace penstock {
namespace fabric {
namespace verbs {

// A completion queue. HasInput() must take completions off the device's queue,
// because the device cannot report if completions wait. This object keeps them
// until Take(). Thread-safe, except Take() and ClearWakeup(), which only the
// owner calls.
class Completions {
 public:
  static absl::StatusOr<std::unique_ptr<Completions>> Create(
      Api* api, ibv_context* device, int entries);
  Completions(const Completions&) = delete;
  Completions& operator=(const Completions&) = delete;
  ~Completions();

  ibv_cq* queue() const { return queue_.get(); }

  // Returns true if Take() would return a completion. May also return true
  // while another thread runs HasInput().
  bool HasInput();
  // Removes the oldest completions, at most `max`. Returns their number, or a
  // negative number if the device has failed.
  int Take(ibv_wc* out, int max);

  // Arms or disarms the queue. While the queue is armed, a completion makes one
  // of wakeup_fds() readable. After arming, check HasInput() once more.
  void SetArmed(bool armed);
  std::vector<int> wakeup_fds() const { return {channel_->fd, wake_.get()}; }
  // Makes one of wakeup_fds() readable until ClearWakeup(), as a completion
  // does.
  void Wake();
  // Clears wakeup_fds(), and arms again if the queue was armed. Check
  // HasInput() afterwards.
  void ClearWakeup();

 private:
  static constexpr int kKept = 16;

  Completions(Api* api, CompletionChannel channel, CompletionQueue queue,
              base::UniqueFd wake);
  // Reads the events from the channel. Returns true if there were any.
  bool TakeEvents();
  // Moves completions from the device's queue to kept_, if kept_ is empty.
  void RefillLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  Api* const api_;
  CompletionChannel channel_;
  CompletionQueue queue_;
  const base::UniqueFd wake_;  // eventfd
  std::atomic<bool> woken_{false};
  std::atomic<bool> armed_{false};
  std::atomic<int> armings_{0};      // since the channel was last empty
  unsigned int unacknowledged_ = 0;  // events; acknowledged in bulk

  base::Mutex mu_;
  ibv_wc kept_[kKept] ABSL_GUARDED_BY(mu_);
  int first_ ABSL_GUARDED_BY(mu_) = 0;
  std::atomic<int> count_{0};
  bool failed_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_COMPLETIONS_H_
