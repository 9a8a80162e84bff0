// One background thread for what happens rarely.

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

namespace penstock {
namespace progress {

// Accepts connections, sets them up, notices hang-ups, keeps timers. Never on
// the path of a message.
//
// Thread-safe. Callbacks run one after another on the loop's thread, holding no
// lock, and may call everything here. The loop and its thread live as long as
// the process. In the child of a fork there is no such thread: the parent's
// loop does nothing there any more, and Get() makes a new one.
class EventLoop {
 public:
  // Names a watch or a timer; never 0, never used again.
  using Id = uint64_t;
  // Gets the epoll events (EPOLLIN ...) that are pending.
  using FdCallback = std::function<void(uint32_t events)>;
  using Callback = std::function<void()>;

  // The process's loop, made on first use. An error (no descriptors, no
  // threads left) is a normal answer; the next call tries again.
  static absl::StatusOr<EventLoop*> Get();

  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  // Calls `callback` while any of `events` is pending at `fd` (level
  // triggered; EPOLLERR and EPOLLHUP always count). `fd` stays open until
  // Unwatch().
  absl::StatusOr<Id> Watch(int fd, uint32_t events, FdCallback callback);
  // No new call of the callback begins after this; one that has begun on the
  // loop's thread may still go on, so a callback owns what it touches. Unknown
  // ids, 0 among them, are ignored.
  void Unwatch(Id id);

  // Calls `callback` once, `delay` from now or somewhat later.
  Id RunAfter(absl::Duration delay, Callback callback);
  // As Unwatch(). True if the callback will not run.
  bool Cancel(Id id);

  // Calls `callback` soon, in the order of the calls of Post().
  void Post(Callback callback);

 private:
  struct Watched {
    int fd;
    std::shared_ptr<FdCallback> callback;
  };
  // Not absl::Time: the system's clock may be set.
  using TimePoint = std::chrono::steady_clock::time_point;
  using TimerKey = std::pair<TimePoint, Id>;

  EventLoop(base::UniqueFd epoll, base::UniqueFd wake);
  ~EventLoop() = default;  // only one that never ran

  static absl::StatusOr<EventLoop*> Create();
  static void* ThreadMain(void* loop);
  // Whether this is another process's loop, whose locks may be held forever
  // and whose epoll set is still in use there.
  bool IsForeign() const;
  void Run();
  void Wake();
  void DispatchFd(Id id, uint32_t events);
  void RunDueTimers();
  void RunPosted();
  int WaitMillis();

  const base::UniqueFd epoll_;
  const base::UniqueFd wake_;  // eventfd: timers or posted calls changed
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
