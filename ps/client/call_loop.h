// Runs a client's calls and their callbacks.

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
#include "ps/client/route.h"
#include "ps/client/steady_timer.h"
#include "tensor_service/direct_receive.h"

namespace penstock::ps {

// A loop that makes unary calls with raw messages, and runs timers. Each
// started call or timer leads to exactly one callback. A callback holds no
// lock, may start other calls, and never runs within the function that started
// its call. One callback runs at a time.
//
// Callbacks run on the loop's thread, or on a thread that waits in a Turn. An
// answer for a blocked thread therefore wakes one thread instead of two.
//
// Stop() and the destructor end all calls with CANCELLED, including calls that
// are started afterwards. The destructor never returns if a callback restarts
// every cancelled call.
//
// Times are of the steady clock, independent of the system's clock.
//
// Thread-safe, except for the destructor, which must not run on the loop's
// thread.
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
    // The memory that may receive the reply. May be null.
    std::shared_ptr<const tensor::PostedRanges> posted;
    // The route to a shard, for a call that does not go to `channel`. Must live
    // until the callback. May be null.
    Route* route = nullptr;
    // True to wait for a connection that is not up yet. If false, a call
    // without a connection fails.
    bool waits_for_server = true;
  };
  using Reply = absl::StatusOr<grpc::ByteBuffer>;

  // Starts a call. Errors have gRPC's message. Returns UNAVAILABLE if the shard
  // of `request.route` has moved to another server during the call.
  void Call(const Request& request, std::function<void(Reply)> done);

  // Calls back at `time`, by base::SteadyNow(), or immediately if the loop
  // stops.
  void At(absl::Time time, std::function<void()> done);
  void Post(std::function<void()> done);

  void Stop();
  bool stopped() const;
  // Returns true within a callback, which must not block for another callback.
  bool IsInCallback() const;

  // A turn of a thread that starts a call and blocks until its end. The thread
  // runs the loop meanwhile, if no other thread does. Forbidden within a
  // callback.
  class Turn {
   public:
    // Begins a turn. Make this object before the call starts: otherwise the
    // start wakes the loop's thread.
    explicit Turn(CallLoop* loop);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Runs the loop until a callback has notified `end`.
    void Await(const absl::Notification& end);

   private:
    CallLoop* const loop_;
    bool is_taken_;
  };

 private:
  // A call or a timer in progress. The tag of gRPC's event is its address.
  struct Event {
    virtual ~Event() = default;
    virtual void Cancel() = 0;
    virtual void Run() = 0;

    SteadyTimer::Id end;  // the timer that ends the event, if there is one
  };
  struct UnaryCall;
  struct Wait;

  // The thread that runs the loop:
  //
  //   state    event             next
  //   -------  ----------------  -------
  //   parked   start, close      thread
  //   parked   turn begins       turn
  //   turn     turn ends         parked; with events left: thread
  //   thread   turn begins       leaving
  //   leaving  no event is left  parked
  //
  // A thread that makes only blocking calls therefore runs the loop itself,
  // from its second call on. For a thread that never blocks, the loop's thread
  // waits in gRPC.
  enum class Runner { kParked, kTurn, kThread, kLeaving };

  // Adds a started event. Returns true if the loop has stopped. The caller must
  // then cancel `event`.
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
