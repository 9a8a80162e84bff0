// The pushes of one worker to one server, one after another.

#ifndef PENSTOCK_PS_CLIENT_PUSH_QUEUE_H_
#define PENSTOCK_PS_CLIENT_PUSH_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/client/gradients.h"
#include "ps/client/pull.h"
#include "ps/wire/ps.pb.h"

namespace penstock::ps {

enum class PushVerdict {
  kCounted,
  kDuplicate,  // an earlier push of the step has counted; changes nothing
  kLate,       // the step has ended without the push; changes nothing
};

// All servers' verdicts on a push.
struct Pushed {
  std::vector<PushVerdict> verdicts;  // by server

  bool counted() const;  // at every server
};

// A queue of the worker's pushes to one server. Tracks the worker's clock at
// this server, which may differ from the worker's step:
//
//   a pull for step s     asks for s, or for one more than the clock of the
//                         last push, if that is larger
//   the push of step s    has the lowest clock that a pull for s was answered
//                         with; without such a pull, the clock that a pull
//                         would ask for
//   a repeated push of s  has the clock of the last push, if that push was of
//                         s, and so counts once
//
// A push that was refused with INVALID_ARGUMENT has ended no step. The queue
// forgets a refused push unless a later push has been handed over.
//
// A server refuses a push that is ahead of every answered pull. Unless a pull
// for the step has waited for all (see PullAnswer), the queue first makes a
// pull without values.
//
// Thread-safe.
class PushQueue {
 public:
  using Done = std::function<void(absl::StatusOr<PushVerdict>)>;

  // `puller` belongs to the worker. The queue must outlive the puller's loop.
  PushQueue(const Puller& puller, size_t server, uint64_t clock);

  uint64_t ClockFor(uint64_t step) const;
  // Records the answer to a pull for `step`.
  void OnPulled(uint64_t step, const PullAnswer& answer);
  // Records that the worker has joined again.
  void OnJoined(uint64_t clock);

  // Sends the push after all earlier pushes. Calls back once.
  void Push(uint64_t step, const tensor::Bundle& gradients, absl::Time deadline,
            Done done);

 private:
  struct PushClock {
    uint64_t step;
    uint64_t clock;
  };
  struct Pending {
    uint64_t step;
    uint64_t clock;
    bool must_wait;  // needs a pull of its own first
    tensor::Bundle gradients;
    absl::Time deadline;
    Done done;
  };

  uint64_t ClockForLocked(uint64_t step) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Handle the first push of the queue, which stays queued until it has ended.
  void Begin(Pending* push);
  void Wait(Pending* push);
  void Send(Pending* push);
  void Fail(const Pending& push, const absl::Status& error);
  void End(absl::StatusOr<PushVerdict> verdict);
  void ForgetLocked(const Pending& push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::StatusOr<grpc::ByteBuffer> Encode(const Pending& push) const;
  absl::StatusOr<PushVerdict> Read(const CallLoop::Reply& reply,
                                   int attempts) const;
  // Returns the push and its server, for messages.
  std::string Named(const Pending& push) const;
  absl::Status Explain(const Pending& push, const absl::Status& error) const;

  const Puller puller_;
  const size_t server_;
  const bool may_be_ahead_;  // not all tables are asynchronous
  mutable absl::Mutex mu_;
  uint64_t next_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PullAnswer> pulled_ ABSL_GUARDED_BY(mu_);  // by step
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);
  // Describe the last push handed over, and the last push sent.
  absl::optional<uint64_t> last_step_ ABSL_GUARDED_BY(mu_);
  absl::optional<PushClock> sent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PUSH_QUEUE_H_
