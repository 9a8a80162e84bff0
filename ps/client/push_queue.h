// The pushes of one worker to one server, one after another.

#ifndef PENSTOCK_PS_CLIENT_PUSH_QUEUE_H_
#define PENSTOCK_PS_CLIENT_PUSH_QUEUE_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
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
  kDuplicate,  // an earlier push of the step has counted; it changes nothing
  kLate,       // the step has ended without it; it changes nothing
};

// How all servers have taken a push.
struct Pushed {
  std::vector<PushVerdict> verdicts;  // by server

  bool counted() const;  // at every server
};

// Knows the clock of the worker at this server, which may not be its own step:
//
//   a pull for step s     asks for the larger of s, and one more than what the
//                         last push had
//   the push of step s    has what the first pull for s was answered with; if
//                         there was none, what a pull would ask for
//   a repeated push of s  has what the last push had, if that was of s; so it
//                         counts once
//
// A push that was refused as INVALID_ARGUMENT has ended no step: if none has
// been handed over behind it, all is as if it had not been.
//
// A server refuses a push that is ahead of what can have been pulled. If no
// pull for the step has waited for all that the server may wait for, the queue
// makes one, without values, before the push.
//
// Thread-safe.
class PushQueue {
 public:
  using Done = std::function<void(absl::StatusOr<PushVerdict>)>;

  // `puller` is that of the worker, of this server's connection. The queue must
  // live until its loop has ended.
  PushQueue(const Puller& puller, size_t server, uint64_t clock);

  uint64_t ClockFor(uint64_t step) const;
  // A pull for `step` was answered.
  void OnPulled(uint64_t step, const PullAnswer& answer);
  // The worker has joined again.
  void OnJoined(uint64_t clock);

  // Sends the push after those before it. Calls back once.
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
    bool must_wait;  // by a pull of its own
    tensor::Bundle gradients;
    absl::Time deadline;
    Done done;
  };

  uint64_t ClockForLocked(uint64_t step) const ABSL_SHARED_LOCKS_REQUIRED(mu_);
  // For the first of the queue, which stays there until it has ended.
  void Begin(Pending* push);
  void Wait(Pending* push);
  void Send(Pending* push);
  void Fail(const Pending& push, const absl::Status& error);
  void End(absl::StatusOr<PushVerdict> verdict);
  void ForgetLocked(const Pending& push) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  absl::StatusOr<grpc::ByteBuffer> Encode(const Pending& push) const;
  absl::StatusOr<PushVerdict> Read(const CallLoop::Reply& reply,
                                   int attempts) const;
  absl::Status Explain(const Pending& push, const absl::Status& error) const;

  const Puller puller_;
  const size_t server_;
  const bool may_be_ahead_;  // not all tables are asynchronous
  mutable absl::Mutex mu_;
  uint64_t next_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PullAnswer> pulled_ ABSL_GUARDED_BY(mu_);  // by step
  std::deque<Pending> pending_ ABSL_GUARDED_BY(mu_);
  // Of the last push that was handed over, and that was sent.
  absl::optional<uint64_t> last_step_ ABSL_GUARDED_BY(mu_);
  absl::optional<PushClock> sent_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_PUSH_QUEUE_H_
