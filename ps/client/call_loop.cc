#include "ps/client/call_loop.h"

#include <utility>

#include "grpcpp/alarm.h"
#include "grpcpp/client_context.h"
#include "grpcpp/generic/generic_stub.h"
#include "tensor_service/calls.h"
#include "tensor_service/status.h"
#include "transport/base/steady_time.h"

namespace penstock::ps {

struct CallLoop::UnaryCall final : Event {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
  grpc::ByteBuffer reply;
  grpc::Status status;
  std::function<void(Reply)> done;
  bool is_late = false;  // set by the timer
  Route* route = nullptr;

  void Cancel() override { context.TryCancel(); }
  // Tells the route if the primary has answered. UNAVAILABLE comes from gRPC,
  // or from a server that does not lead the shard.
  void NoteAnswer() const {
    const grpc::StatusCode code = status.error_code();
    const bool is_cut_short = code == grpc::StatusCode::CANCELLED ||
                              code == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (is_cut_short) return;
    route->NoteAnswer(code != grpc::StatusCode::UNAVAILABLE);
  }
  void Run() override {
    const bool has_moved = route != nullptr && route->End(&context);
    if (route != nullptr && !has_moved) NoteAnswer();
    if (has_moved && status.error_code() == grpc::StatusCode::CANCELLED) {
      status = {grpc::StatusCode::UNAVAILABLE,
                "another server leads the shard now"};
    }
    if (is_late && status.error_code() == grpc::StatusCode::CANCELLED) {
      status = {grpc::StatusCode::DEADLINE_EXCEEDED, "Deadline Exceeded"};
    }
    if (!status.ok()) return done(tensor::FromGrpc(status, context.peer()));
    done(std::move(reply));
  }
};

struct CallLoop::Wait final : Event {
  grpc::Alarm alarm;
  std::function<void()> done;

  void Cancel() override { alarm.Cancel(); }
  void Run() override { done(); }
};

CallLoop::CallLoop() : thread_([this] { ThreadLoop(); }) {}

CallLoop::~CallLoop() {
  Stop();
  auto* const last = new Wait;
  last->done = [] {};
  {
    absl::MutexLock lock(&mu_);
    is_closing_ = true;
    // Adds an event to the queue, which wakes the thread: it may be waiting
    // although no call is in progress. Holds the lock, so that the thread
    // cannot shut the queue down first.
    StartLocked(last, absl::InfinitePast());
  }
  thread_.join();
}

bool CallLoop::Add(Event* event) {
  absl::MutexLock lock(&mu_);
  AddLocked(event);
  return stopped_;
}

void CallLoop::AddLocked(Event* event) {
  events_.insert(event);
  if (runner_ == Runner::kParked) WakeThreadLocked();
}

void CallLoop::WakeThreadLocked() {
  runner_ = Runner::kThread;
  unpark_.Signal();
}

void CallLoop::Call(const Request& request, std::function<void(Reply)> done) {
  auto* const call = new UnaryCall;
  call->done = std::move(done);
  call->context.set_deadline(
      tensor::DeadlineAfter(request.deadline - base::SteadyNow()));
  call->context.set_wait_for_ready(request.waits_for_server);
  call->route = request.route;
  // Start the call before Add(), because Stop() can only cancel calls that were
  // started.
  call->reader = grpc::GenericStub(request.route == nullptr
                                       ? request.channel
                                       : request.route->Begin(&call->context))
                     .PrepareUnaryCall(&call->context, request.path,
                                       request.bytes, &queue_);
  if (request.posted != nullptr) request.posted->AttachTo(&call->context);
  call->reader->StartCall();
  // Ends the call at its deadline. gRPC also has the deadline, but fires too
  // late if the system's clock is set back.
  call->end = timer_.At(request.deadline, [call] {
    call->is_late = true;
    call->Cancel();
  });
  const bool has_stopped = Add(call);
  if (has_stopped) call->Cancel();
  // Do not use `call` after Finish(): it may end and be deleted at any time.
  call->reader->Finish(&call->reply, &call->status, call);
}

void CallLoop::At(absl::Time time, std::function<void()> done) {
  auto* const wait = new Wait;
  wait->done = std::move(done);
  absl::MutexLock lock(&mu_);  // Stop() can cancel only an alarm that is set
  StartLocked(wait, time);
}

void CallLoop::StartLocked(Wait* wait, absl::Time time) {
  AddLocked(wait);
  const bool is_over = stopped_ || time <= base::SteadyNow();
  wait->alarm.Set(&queue_,
                  is_over ? gpr_inf_past(GPR_CLOCK_MONOTONIC)
                          : gpr_inf_future(GPR_CLOCK_MONOTONIC),
                  wait);
  // Cancels the alarm at its time, because the cancellation produces the
  // alarm's event.
  if (!is_over) wait->end = timer_.At(time, [wait] { wait->Cancel(); });
}

void CallLoop::Post(std::function<void()> done) {
  At(absl::InfinitePast(), std::move(done));
}

void CallLoop::Stop() {
  absl::MutexLock lock(&mu_);
  if (stopped_) return;
  stopped_ = true;
  for (Event* const event : events_) event->Cancel();
}

bool CallLoop::stopped() const {
  absl::MutexLock lock(&mu_);
  return stopped_;
}

bool CallLoop::IsInCallback() const {
  absl::MutexLock lock(&mu_);
  return in_callback_ == std::this_thread::get_id();
}

CallLoop::Turn::Turn(CallLoop* loop)
    : loop_(loop), is_taken_(loop->TakeTurn()) {}

CallLoop::Turn::~Turn() {
  if (is_taken_) loop_->EndTurn();
}

void CallLoop::Turn::Await(const absl::Notification& end) {
  if (!is_taken_) return end.WaitForNotification();
  while (!end.HasBeenNotified() && loop_->RunNext()) continue;
}

bool CallLoop::TakeTurn() {
  absl::MutexLock lock(&mu_);
  if (runner_ == Runner::kThread) runner_ = Runner::kLeaving;
  if (runner_ != Runner::kParked) return false;
  runner_ = Runner::kTurn;
  return true;
}

void CallLoop::EndTurn() {
  absl::MutexLock lock(&mu_);
  runner_ = Runner::kParked;
  if (!events_.empty()) WakeThreadLocked();
}

// Returns true if the loop's thread may wait without an event. Returns false
// once the loop closes, because the thread must then handle the last event.
bool CallLoop::MayParkLocked() const {
  return runner_ == Runner::kLeaving && events_.empty() && !is_closing_;
}

void CallLoop::ThreadLoop() {
  do {
    absl::MutexLock lock(&mu_);
    if (MayParkLocked()) runner_ = Runner::kParked;
    while (runner_ == Runner::kParked || runner_ == Runner::kTurn) {
      unpark_.Wait(&mu_);
    }
  } while (RunNext());
}

bool CallLoop::RunNext() {
  void* tag;
  bool ok;
  if (!queue_.Next(&tag, &ok)) return false;
  const std::unique_ptr<Event> event(static_cast<Event*>(tag));
  SteadyTimer::Id end;
  {
    absl::MutexLock lock(&mu_);  // At() may still be writing event->end
    end = event->end;
    in_callback_ = std::this_thread::get_id();
  }
  timer_.Cancel(end);
  event->Run();
  bool is_end = false;
  {
    absl::MutexLock lock(&mu_);
    in_callback_ = std::thread::id();
    events_.erase(event.get());
    is_end = is_closing_ && events_.empty();
  }
  if (is_end) queue_.Shutdown();
  return true;
}

}  // namespace penstock::ps
