// A worker that takes part in a training.

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
#include "ps/client/gradients.h"
#include "ps/client/heartbeat.h"
#include "ps/client/pull.h"
#include "ps/client/push_queue.h"
#include "ps/client/training_connection.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// One worker of a training. Each rank has one worker at a time. A training
// without error handling:
//
//   auto connection = *TrainingConnection::Open({channels});
//   auto worker = *Worker::Join({connection, rank});
//   for (uint64_t step = worker->clock(); step < last; ++step) {
//     Pulled pulled = *worker->Pull(step);
//     StepGradients gradients = ComputeOn(*pulled.Dense("kernel"), ...);
//     worker->Push(step, gradients);
//   }
//   worker->Leave();
//
// To overlap transfers with computation, start the push and then immediately
// the pull of the next step. Servers answer the pull once its values are fresh
// enough.
//
//     worker->StartPush(step, gradients, on_pushed);
//     worker->StartPull(step + 1, spec, on_pulled);
//
// Steps are the worker's own numbers, from clock() on. The worker pushes every
// step, even one without gradients. A server may be at another step if this
// worker was disconnected, or if others did not wait for it. A push has the
// same clock at all servers: the highest clock with which a server has
// answered. Servers with a lower clock first get empty pushes. Each push that
// counts at all servers is therefore wholly in a checkpoint, or wholly outside.
//
// PatientCall decides which calls are repeated. A push counts at most once,
// however often it is sent. A push with the verdict kCounted has counted
// exactly once, even if the connection broke and the worker had to join again.
// After an error, it is unknown whether a server has counted the push.
// Repeating the push is safe until the push of another step is sent. If a
// server refuses a push with INVALID_ARGUMENT (for example, a gradient is not
// finite), the step has not ended there and other workers wait. Push the step
// again, with other gradients or none.
//
// Errors name the call, the server and the remedy. Returns the errors of
// ps.proto, DEADLINE_EXCEEDED after a call's time limit, and CANCELLED if the
// worker is destroyed. The first error of a server ends the call.
//
// Thread-safe, with two exceptions:
// - Leave() and the destructor must be the last calls, outside callbacks.
// - One thread at a time may push.
//
// Callbacks run one after another, without a lock, and may start calls. A
// callback runs on the worker's thread, or within any thread's blocking call. A
// slow callback delays all other callbacks, but no heartbeat: heartbeats have
// their own thread.
class Worker {
 public:
  struct Options {
    std::shared_ptr<const TrainingConnection> connection;
    uint32_t rank = 0;  // 0 is the chief
    // A number that distinguishes this process from earlier processes of the
    // rank. 0 means that a number is drawn at random.
    uint64_t incarnation = 0;
    absl::Duration join_timeout = absl::Seconds(60);
    // Limit the time of a call, including all waits for other workers and for a
    // lost server. The defaults exceed the servers' limits, because a server's
    // error names the workers that the server waits for.
    absl::Duration pull_timeout = absl::Minutes(15);
    absl::Duration push_timeout = absl::Minutes(15);
    // A function that makes the coders that compress gradients of dense tables.
    // Empty means no compression. Called once for each part. Gradients in packs
    // are sent uncompressed.
    MakeGradientCoder coder;
  };

  // Joins every server, and keeps the memberships by heartbeats. Returns the
  // worker.
  static absl::StatusOr<std::unique_ptr<Worker>> Join(Options options);

  // Ends all calls with CANCELLED. Unless Leave() was called, breaks off the
  // heartbeats, so that the servers count the worker as lost.
  ~Worker();

  // Returns the step to begin with. After a restart, returns the first step
  // that no server has received from this rank.
  uint64_t clock() const { return first_step_; }
  const TrainingConnection& connection() const { return *connection_; }
  // Returns the options, with the drawn incarnation.
  const Options& options() const { return options_; }

  // Sets the initial values of all dense tables. For rank 0 only. Servers that
  // have values keep their values. The given tensors may be views of one piece
  // of memory.
  absl::Status Initialize(const tensor::Bundle& values);

  using PullCallback = std::function<void(absl::StatusOr<Pulled>)>;
  // Starts a pull. Calls `done` once values that are fresh enough for `step`
  // have arrived from all servers. Values of asynchronous tables arrive
  // immediately, and may lack the preceding push.
  void StartPull(uint64_t step, const PullSpec& spec, PullCallback done);
  absl::StatusOr<Pulled> Pull(uint64_t step, const PullSpec& spec = {});

  using PushCallback = std::function<void(absl::StatusOr<Pushed>)>;
  // Starts a push of the gradients of `step`, and ends the step at all servers,
  // even at servers without gradients. Calls back once all servers have taken
  // their gradients. The memory of the gradients must not change before the
  // callback. Each Tensor keeps its memory alive.
  //
  // Sends nothing and reports INVALID_ARGUMENT if `step` is neither the next
  // step nor the last pushed step, or if a gradient is not finite.
  //
  // Each server gets one push at a time. Further pushes wait in this process
  // and hold their gradients.
  void StartPush(uint64_t step, const StepGradients& gradients,
                 PushCallback done);
  absl::StatusOr<Pushed> Push(uint64_t step, const StepGradients& gradients);

  // Tells the servers that this worker leaves, so that no worker waits for this
  // one. Ends unfinished calls with CANCELLED. Blocks like
  // HeartbeatSender::Leave().
  void Leave();

 private:
  explicit Worker(Options options);

  Puller AsPuller();
  absl::Status JoinAll(absl::Duration timeout);
  absl::Status AlignClocks(const std::vector<uint64_t>& clocks);
  PatientCall::Rejoin RejoinAt(size_t server);
  std::vector<uint64_t> ClocksFor(uint64_t step) const;
  uint64_t PushClockFor(uint64_t step) const;
  absl::Status CheckMayPush(uint64_t step) const;
  absl::Status CheckMayBlock() const;
  absl::Status InitializeAt(size_t server, tensor::Bundle values,
                            absl::Time deadline);

  const Options options_;
  const std::shared_ptr<const TrainingConnection> connection_;
  v1::WorkerId id_;
  const sparse::HashKey hash_;
  uint64_t first_step_ = 0;
  uint64_t next_step_ = 0;   // the first step not pushed yet
  uint64_t last_clock_ = 0;  // the clock of the push of the step before
  GradientSplitter splitter_;
  // The queues of pushes, by server. Declared before loop_, whose callbacks use
  // them, so that loop_ ends first.
  std::vector<std::unique_ptr<PushQueue>> queues_;  // by server
  CallLoop loop_;
  std::unique_ptr<HeartbeatSender> heartbeats_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_WORKER_H_
