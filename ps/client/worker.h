// Takes part in a training.

#ifndef PENSTOCK_PS_CLIENT_WORKER_H_
#define PENSTOCK_PS_CLIENT_WORKER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/client/call_loop.h"
#include "ps/client/connection.h"
#include "ps/client/gradients.h"
#include "ps/client/heartbeat.h"
#include "ps/client/pull.h"
#include "ps/client/push_queue.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// One worker of a training, of which each rank has one at a time. A training
// is, with errors left out:
//
//   auto connection = *Connection::Open({channels});
//   auto worker = *Worker::Join({connection, rank});
//   for (uint64_t step = worker->clock(); step < last; ++step) {
//     Pulled pulled = *worker->Pull(step);
//     StepGradients gradients = ComputeOn(*pulled.Dense("kernel"), ...);
//     worker->Push(step, gradients);
//   }
//   worker->Leave();
//
// and one whose transfers overlap with its computation starts the push, and the
// pull of the next step right behind it: servers answer that once its values
// are fresh enough, so it is there when it is wanted.
//
//     worker->StartPush(step, gradients, on_pushed);
//     worker->StartPull(step + 1, spec, on_pulled);
//
// Steps are the worker's own numbers, from clock() on, and none is left out: a
// step without gradients is pushed with none. A server may be at another step,
// if this worker was away, or others have not waited for it. Each server gets
// the clock that it has answered with.
//
// What is repeated is PatientCall's to say. A push counts at most once, however
// often it is sent, and once if the verdict says so, even if the connection
// broke in between and the worker had to join again. After an error of a push
// nobody knows whether a server has counted it; repeating it before the push of
// another step is safe. At a server that refuses it (INVALID_ARGUMENT: it is
// not finite, say) the step has not ended, and others wait: push it again, with
// other gradients or none.
//
// Errors name the call, the server and the remedy. Beside those of ps.proto:
// DEADLINE_EXCEEDED after a call's time limit, and CANCELLED if the worker is
// destroyed. The first error of a server ends the call.
//
// Thread-safe, but for Leave() and the destructor, which have to be the last
// and not in a callback; and pushes, which are for one thread at a time.
// Callbacks run one after another, without a lock, and may start calls: on the
// worker's thread, or within any thread's call that blocks. Heartbeats have a
// thread of their own, so a callback may take its time, but nothing else comes
// back meanwhile.
class Worker {
 public:
  struct Options {
    std::shared_ptr<const Connection> connection;
    uint32_t rank = 0;  // 0 is the chief
    // Tells this run of the rank from earlier ones. 0: drawn at random.
    uint64_t incarnation = 0;
    absl::Duration join_timeout = absl::Seconds(60);
    // Limit a call, with all waits for other workers and for a server that is
    // gone. Longer than the servers' own, which know whom they wait for.
    absl::Duration pull_timeout = absl::Minutes(15);
    absl::Duration push_timeout = absl::Minutes(15);
    // What gradients of dense tables are compressed by; empty: nothing. Asked
    // once for each part. Those in packs are sent as they are.
    MakeGradientCoder coder;
  };

  // Becomes a member at every server, and stays one by heartbeats.
  static absl::StatusOr<std::unique_ptr<Worker>> Join(Options options);

  // Ends all calls with CANCELLED. Breaks off the heartbeats, so that the
  // servers count the worker as lost, unless Leave() was called.
  ~Worker();

  // Returns the step to begin with: after a restart, the first that a server
  // has not had from this rank.
  uint64_t clock() const { return first_step_; }
  const Connection& connection() const { return *connection_; }

  // Sets the first values, of all dense tables. For rank 0 only. Servers that
  // have values keep them. Values may be views of one piece of memory.
  absl::Status Initialize(const tensor::Bundle& values);

  using PullCallback = std::function<void(absl::StatusOr<Pulled>)>;
  // Calls back once all servers have values that are fresh enough for `step`,
  // and the values are here. For asynchronous tables that is at once, and the
  // push before it may not be in them.
  void StartPull(uint64_t step, const PullSpec& spec, PullCallback done);
  absl::StatusOr<Pulled> Pull(uint64_t step, const PullSpec& spec = {});

  using PushCallback = std::function<void(absl::StatusOr<Pushed>)>;
  // Hands over the gradients of `step`, and ends it at all servers, also at
  // those of which there is nothing. Calls back once all have taken them. The
  // memory of gradients is sent from, and must not change before that; a
  // Tensor sees to it.
  //
  // Sends nothing, and returns INVALID_ARGUMENT, if `step` is neither the next
  // step nor the last one that was pushed, or if a gradient is not finite.
  //
  // Each server gets one push at a time; others wait here, and hold their
  // gradients.
  void StartPush(uint64_t step, const StepGradients& gradients,
                 PushCallback done);
  absl::StatusOr<Pushed> Push(uint64_t step, const StepGradients& gradients);

  // Tells the servers that this worker leaves, so that nobody waits for it.
  // Calls that have not ended end with CANCELLED. Blocks as
  // HeartbeatSender::SayGoodBye() does.
  void Leave();

 private:
  explicit Worker(Options options);

  Puller AsPuller();
  absl::Status JoinAll(absl::Duration timeout);
  PatientCall::Rejoin RejoinAt(size_t server);
  std::vector<uint64_t> ClocksFor(uint64_t step) const;
  absl::Status CheckMayPush(uint64_t step) const;
  absl::Status CheckMayBlock() const;
  absl::Status InitializeAt(size_t server, tensor::Bundle values,
                            absl::Time deadline);

  const Options options_;
  const std::shared_ptr<const Connection> connection_;
  v1::WorkerId id_;
  const sparse::HashKey hash_;
  uint64_t first_step_ = 0;
  uint64_t next_step_ = 0;  // the first that was not pushed
  GradientSplitter splitter_;
  // Before the loop, whose callbacks use them: it ends first.
  std::vector<std::unique_ptr<PushQueue>> queues_;  // by server
  CallLoop loop_;
  std::unique_ptr<HeartbeatSender> heartbeats_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_WORKER_H_
