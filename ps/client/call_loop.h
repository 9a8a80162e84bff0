// Where a client's calls come back.

#ifndef PENSTOCK_PS_CLIENT_CALL_LOOP_H_
#define PENSTOCK_PS_CLIENT_CALL_LOOP_H_

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "grpcpp/channel.h"
#include "grpcpp/completion_queue.h"
#include "grpcpp/support/byte_buffer.h"
#include "ps/client/steady_timer.h"
#include "tensor_service/direct_receive.h"

namespace penstock::ps {

// Makes unary calls with raw messages, and waits. Each start is answered by one
// callback, without a lock, never within the start. A callback may start other
// things; while it runs, no other does.
//
// Callbacks run on the loop's thread, or on one that waits in a Turn. So an
// answer that somebody blocks for wakes one thread, and not two.
//
// The destructor, and before it Stop(), ends all that is under way with
// CANCELLED, and what is started afterwards, too: a callback that starts again
// whatever is cancelled never lets it end.
//
// Times are those of the steady clock, whatever the system's is set to.
//
// Thread-safe, but for the destructor, which must not run on the loop's thread.
class CallLoop {
 public:
  CallLoop();
  ~CallLoop();
  CallLoop(const CallLoop&) = delete;
  CallLoop& operator=(const CallLoop&) = delete;

  struct Request {
    std::shared_ptr<grpc::Channel> channel;
    std::string path;  // "/package.Service/Method"
    grpc::ByteBuffer bytes;
    absl::Time deadline;  // by base::SteadyNow()
    // Of memory that the reply may be received into; may be null.
    std::shared_ptr<const tensor::PostedRanges> posted;
  };
  using Reply = absl::StatusOr<grpc::ByteBuffer>;

  // Waits for a connection, if it is not up yet. Errors have gRPC's message.
  void Call(const Request& request, std::function<void(Reply)> done);

  // Calls back at `time`, by base::SteadyNow(), and at once if the loop stops.
  void At(absl::Time time, std::function<void()> done);
  void Post(std::function<void()> done);

  void Stop();
  bool stopped() const;
  // Whether the caller is a callback: it must not block for another one.
  bool IsInCallback() const;

  // For a thread that blocks until something has ended that it starts here. It
  // runs the loop meanwhile, if no other thread does. Not within a callback.
  class Turn {
   public:
    // Before the start: else the loop's thread is woken for it.
    explicit Turn(CallLoop* loop);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Returns once a callback has notified `end`.
    void Await(const absl::Notification& end);

   private:
    CallLoop* const loop_;
    bool is_taken_;
  };

 private:
  // Something under way. Its address is the tag of its event.
  struct Event {
    virtual ~Event() = default;
    virtual void Cancel() = 0;
    virtual void Happen() = 0;

    SteadyTimer::Id end;  // of the timer's call, if there is one
  };
  struct UnaryCall;
  struct Wait;

  // Who runs the loop, and where its thread waits:
  //
  //   state    event             next
  //   -------  ----------------  -------
  //   parked   start, close      thread
  //   parked   turn begins       turn
  //   turn     turn ends         parked; with events left: thread
  //   thread   turn begins       leaving
  //   leaving  no event is left  parked
  //
  // So a thread that only blocks runs the loop from its second call on, and one
  // that never does finds the loop's thread waiting in gRPC.
  enum class Runner { kParked, kTurn, kThread, kLeaving };

  // Returns whether the loop has stopped: then `event` is to be cancelled.
  bool Add(Event* event);
  void AddLocked(Event* event) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartLocked(Wait* wait, absl::Time time)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WakeThreadLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool TakeTurn() ABSL_LOCKS_EXCLUDED(mu_);
  void EndTurn() ABSL_LOCKS_EXCLUDED(mu_);
  void ThreadLoop() ABSL_LOCKS_EXCLUDED(mu_);
  bool MayParkLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Waits for an event and runs its callback. Returns false at the loop's end.
  bool RunNext() ABSL_LOCKS_EXCLUDED(mu_);

  grpc::CompletionQueue queue_;
  mutable absl::Mutex mu_;
  bool stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool is_closing_ ABSL_GUARDED_BY(mu_) = false;
  absl::flat_hash_set<Event*> events_ ABSL_GUARDED_BY(mu_);
  Runner runner_ ABSL_GUARDED_BY(mu_) = Runner::kParked;
  absl::CondVar unpark_;
  std::thread::id in_callback_ ABSL_GUARDED_BY(mu_);  // none: no thread
  SteadyTimer timer_;
  std::thread thread_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_CALL_LOOP_H_
