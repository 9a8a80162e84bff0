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

// The verdict of each server on a push.
struct Pushed {
  std::vector<PushVerdict> verdicts;  // by server

  // Returns true if the push has counted at every server.
  bool counted() const;
};

// A queue of the worker's pushes to one server. Tracks the worker's clock at
// this server, which may differ from the worker's step:
//
//   a pull for step s     asks for s, or for one more than the clock of the
//                         last push, if that is larger
//   the push of step s    wants the lowest clock that a pull for s was answered
//                         with, but none of an earlier push; without such a
//                         pull, the clock that a pull would ask for
//   a repeated push of s  has the clock of the last push, if that push was of
//                         s, and so counts once
//
// The worker gives each push the highest clock that a server's queue wants, so
// that a push has the same clock at all servers; otherwise a cut could contain
// a part of the push. If a server still expects lower clocks of the worker, the
// queue first sends empty pushes for those clocks. If the server's clock is
// already higher than the push's, the push is late there.
//
// A push that was refused with INVALID_ARGUMENT has not ended its step. The
// queue forgets a refused push unless a later push has already been queued.
//
// A server refuses a push that is ahead of every answered pull. Unless a pull
// for the clock has waited for all (see PullAnswer), the queue first makes a
// pull without values.
//
// Thread-safe.
class PushQueue {
 public:
  using Done = std::function<void(absl::StatusOr<PushVerdict>)>;

  // Makes a queue for `server`. `puller` belongs to the worker. The queue must
  // outlive the puller's loop.
  PushQueue(const Puller& puller, size_t server, uint64_t clock);

  uint64_t ClockFor(uint64_t step) const;
  // Returns the clock that a first push of `step` wants.
  uint64_t PushClockFor(uint64_t step) const;
  // Records the answer to a pull for `step`.
  void OnPulled(uint64_t step, const PullAnswer& answer);
  // Records that the worker has joined again.
  void OnJoined(uint64_t clock);

  // Sends the push after all earlier pushes. Calls back once.
  void Push(uint64_t step, uint64_t clock, const tensor::Bundle& gradients,
            absl::Time deadline, Done done);
  // Sends an empty push for each clock below `clock` that the server still
  // expects. If an error is permanent, the next push reports it.
  void CatchUp(uint64_t clock, absl::Time deadline);

 private:
  struct PushClock {
    uint64_t step;
    uint64_t clock;
  };
  struct Pending {
    absl::optional<uint64_t> step;  // nullopt for a push of CatchUp()
    uint64_t clock;
    uint64_t next;   // the server expects no clock below this one
    bool must_wait;  // needs a pull of its own first
    tensor::Bundle gradients;
    absl::Time deadline;
    Done done;
  };

  uint64_t ClockForLocked(uint64_t step) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // Adds a push to the queue. Starts the push if no other is queued.
  void Queue(Pending push) ABSL_LOCKS_EXCLUDED(mu_);
  // Handle the first push of the queue, which stays queued until it has ended.
  void Begin(Pending* push);
  // Sends the push, or an empty push for an earlier clock.
  void Proceed(Pending* push);
  void Wait(Pending* push, uint64_t clock);
  void OnWaited(Pending* push, uint64_t clock, uint64_t answered);
  void Send(Pending* push, uint64_t clock);
  void OnSent(Pending* push, uint64_t clock,
              absl::StatusOr<PushVerdict> verdict);
  void Fail(const Pending& push, const absl::Status& error);
  void End(absl::StatusOr<PushVerdict> verdict);
  void ForgetLocked(const Pending& push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // Returns the clock to push next: the push's own clock, or an earlier clock
  // that the server still expects.
  uint64_t NextClock(const Pending& push) const;
  // Encodes the push; without gradients if `clock` is not the clock of the
  // push.
  absl::StatusOr<grpc::ByteBuffer> Encode(const Pending& push,
                                          uint64_t clock) const;
  absl::StatusOr<PushVerdict> Read(const CallLoop::Reply& reply,
                                   int attempts) const;
  // Returns a text for messages that names the push and its server.
  std::string Named(const Pending& push) const;
  absl::Status Explain(const Pending& push, const absl::Status& error) const;

  const Puller puller_;
  const size_t server_;
  const bool may_be_ahead_;      // not all tables are asynchronous
  const uint64_t most_skipped_;  // clocks that a push may leave out
  mutable absl::Mutex mu_;
  uint64_t next_ ABSL_GUARDED_BY(mu_);
  // A clock above the clocks of all pushes that were queued.
  uint64_t handed_over_ ABSL_GUARDED_BY(mu_) = 0;
  // The clock from which on the server expects pushes of the worker.
  uint64_t ended_ ABSL_GUARDED_BY(mu_);
  // True if the last push was late. Then only a pull shows the server's clock.
  bool is_behind_ ABSL_GUARDED_BY(mu_) = false;
  std::map<uint64_t, PullAnswer> pulled_ ABSL_GUARDED_BY(mu_);  // by step
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);
  absl::optional<PushClock> sent_ ABSL_GUARDED_BY(mu_);  // the last push
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PUSH_QUEUE_H_
