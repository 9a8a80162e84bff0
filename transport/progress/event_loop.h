// A background thread that watches descriptors and runs timers.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_EVENT_LOOP_H_
#define PENSTOCK_TRANSPORT_PROGRESS_EVENT_LOOP_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/base/unique_fd.h"
#include "transport/progress/spin_policy.h"
#include "transport/progress/spinner.h"

namespace penstock {
namespace progress {

// A thread that watches descriptors and runs timers. A process has at most
// three loops:
// - Get() is for rare events: fabrics accept connections, set them up and
//   notice their ends. No message passes through this loop.
// - GetPolling() carries the messages of front ends whose applications have no
//   waiting thread (transport/rpc). This loop polls the PollSet and its watched
//   descriptors before it sleeps.
// - GetForMonitoring() serves the port of metrics, which is open to anybody. A
//   crowd of clients there delays no connection.
//
// Thread-safe. Callbacks run one after another on the loop's thread, without
// locks, and may call every function of the loop. Callbacks must not block. The
// loop and its thread live as long as the process. In the child of a fork, a
// loop of the parent does nothing, and Get() makes a new one.
class EventLoop {
 public:
  // Identifies a watch or a timer. Never 0, and never reused.
  using Id = uint64_t;
  // Receives the pending epoll events, such as EPOLLIN.
  using FdCallback = std::function<void(uint32_t events)>;
  using Callback = std::function<void()>;

  // Returns the loop of the process, and makes it on first use. Fails if no
  // descriptors or threads are left; the next call tries again.
  static absl::StatusOr<EventLoop*> Get();
  // Returns the loop that polls, as Get() does. The first call sets `mode`.
  static absl::StatusOr<EventLoop*> GetPolling(PollingMode mode);
  // Returns the loop of the port of the metrics, as Get() does.
  static absl::StatusOr<EventLoop*> GetForMonitoring();

  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `callback` again and again while any of `events`, EPOLLERR or
  // EPOLLHUP is pending at `fd`. The caller keeps `fd` open until Unwatch().
  absl::StatusOr<Id> Watch(int fd, uint32_t events, FdCallback callback);
  // Ends a watch. No call of its callback begins afterwards, but a call may
  // still be running. The callback must therefore own everything that it uses.
  // Ignores unknown ids and 0.
  void Unwatch(Id id);
  // Changes the events of a watch. Ignores unknown ids and 0.
  void SetEvents(Id id, uint32_t events);

  // Calls `callback` once, after `delay` or somewhat later. Never calls
  // `callback` if `delay` is infinite. Returns 0 if the loop belongs to the
  // parent of this process.
  Id RunAfter(absl::Duration delay, Callback callback);
  // Cancels a timer. Returns false if its callback has run or is running, or if
  // `id` is unknown.
  bool Cancel(Id id);

  // Calls `callback` soon. Callbacks run in the order of their Post() calls.
  void Post(Callback callback);
  // Returns true on the loop's thread.
  bool IsCurrent() const;
  // Returns true if the loop belongs to the parent of this process. In a forked
  // child, a lock of the loop may be held forever, and the parent still uses
  // the loop's epoll set.
  bool IsForeign() const;

 private:
  struct Watched {
    int fd;
    std::shared_ptr<FdCallback> callback;
  };
  // A time of the monotonic clock. Not absl::Time, because the system's clock
  // may be set.
  using TimePoint = std::chrono::steady_clock::time_point;
  using TimerKey = std::pair<TimePoint, Id>;

  EventLoop(base::UniqueFd epoll, base::UniqueFd wake,
            std::unique_ptr<Spinner> spinner);
  ~EventLoop() = default;  // only for a loop whose thread did not start

  enum class Kind { kRare, kPolling, kMonitoring };

  static absl::StatusOr<EventLoop*> GetOrCreate(Kind kind, PollingMode mode);
  static absl::StatusOr<EventLoop*> CreateOf(Kind kind, PollingMode mode);
  static absl::StatusOr<EventLoop*> Create(const char* name,
                                           std::unique_ptr<Spinner> spinner);
  static void* ThreadMain(void* loop);
  void Run();
  bool HasWatches();
  bool Turn(int wait_millis);
  void Wake();
  void DispatchFd(Id id, uint32_t events);
  bool RunDueTimers();
  bool RunPosted();
  int WaitMillis();

  const base::UniqueFd epoll_;
  const base::UniqueFd wake_;  // eventfd: there is a new timer or posted call
  const std::unique_ptr<Spinner> spinner_;  // null: does not poll
  const uint32_t fork_count_;

  base::Mutex mu_;
  Id next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<Id, Watched> watched_ ABSL_GUARDED_BY(mu_);
  std::map<TimerKey, Callback> timers_ ABSL_GUARDED_BY(mu_);
  std::map<Id, TimePoint> timer_times_ ABSL_GUARDED_BY(mu_);
  std::vector<Callback> posted_ ABSL_GUARDED_BY(mu_);
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_EVENT_LOOP_H_
