#include "transport/progress/event_loop.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <new>

#include "transport/base/status_util.h"
#include "transport/progress/detached_thread.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace progress {
namespace {

// The id of the eventfd in the epoll set. Ids of watches begin at 1.
constexpr uint64_t kWakeId = 0;
constexpr int kEventsPerWait = 64;

// Guards the creation of a loop. The handler of fork() makes a new mutex in the
// child, because a thread of the parent may have held the old one.
base::Mutex* create_mu() {
  static base::Mutex* const mu = new base::Mutex;
  return mu;
}
// The loops of this process, indexed by Kind.
std::atomic<EventLoop*> loops[3];

thread_local const EventLoop* current = nullptr;

// Limits a delay, so that an infinite delay does not overflow the clock.
constexpr absl::Duration kLongestDelay = absl::Hours(24 * 365 * 10);

void ForgetLoopsInChild() {
  for (auto& loop : loops) loop.store(nullptr, std::memory_order_relaxed);
  new (create_mu()) base::Mutex;
}

// Registers before main(), for the reason in base::PerProcess.
const int registered = pthread_atfork(nullptr, nullptr, &ForgetLoopsInChild);

}  // namespace

absl::StatusOr<EventLoop*> EventLoop::Get() {
  return GetOrCreate(Kind::kRare, PollingMode::kEvent);
}

absl::StatusOr<EventLoop*> EventLoop::GetPolling(PollingMode mode) {
  return GetOrCreate(Kind::kPolling, mode);
}

absl::StatusOr<EventLoop*> EventLoop::GetForMonitoring() {
  return GetOrCreate(Kind::kMonitoring, PollingMode::kEvent);
}

absl::StatusOr<EventLoop*> EventLoop::GetOrCreate(Kind kind, PollingMode mode) {
  std::atomic<EventLoop*>& made = loops[static_cast<size_t>(kind)];
  EventLoop* loop = made.load(std::memory_order_acquire);
  if (loop != nullptr) return loop;
  base::MutexLock lock(create_mu());
  loop = made.load(std::memory_order_acquire);
  if (loop != nullptr) return loop;
  absl::StatusOr<EventLoop*> created = CreateOf(kind, mode);
  if (created.ok()) made.store(*created, std::memory_order_release);
  return created;
}

absl::StatusOr<EventLoop*> EventLoop::CreateOf(Kind kind, PollingMode mode) {
  switch (kind) {
    case Kind::kRare:
      return Create("penstock-events", nullptr);
    case Kind::kPolling:
      return Create("penstock-poll",
                    std::make_unique<Spinner>(PollSet::Get(), mode));
    case Kind::kMonitoring:
      return Create("penstock-http", nullptr);
  }
  return absl::InvalidArgumentError("no such loop");
}

absl::StatusOr<EventLoop*> EventLoop::Create(const char* name,
                                             std::unique_ptr<Spinner> spinner) {
  base::UniqueFd epoll(epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return base::ErrnoStatus(errno, "epoll_create1");
  base::UniqueFd wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return base::ErrnoStatus(errno, "eventfd");
  epoll_event event = {};
  event.events = EPOLLIN;
  event.data.u64 = kWakeId;
  if (epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) != 0) {
    return base::ErrnoStatus(errno, "epoll_ctl");
  }
  auto* loop =
      new EventLoop(std::move(epoll), std::move(wake), std::move(spinner));
  absl::Status started = StartDetachedThread(name, &ThreadMain, loop);
  if (!started.ok()) {
    delete loop;
    return started;
  }
  return loop;
}

EventLoop::EventLoop(base::UniqueFd epoll, base::UniqueFd wake,
                     std::unique_ptr<Spinner> spinner)
    : epoll_(std::move(epoll)),
      wake_(std::move(wake)),
      spinner_(std::move(spinner)),
      fork_count_(ForkCount()) {}

bool EventLoop::IsCurrent() const { return current == this; }

bool EventLoop::IsForeign() const { return fork_count_ != ForkCount(); }

void* EventLoop::ThreadMain(void* loop) {
  current = static_cast<EventLoop*>(loop);
  static_cast<EventLoop*>(loop)->Run();
  return nullptr;
}

absl::StatusOr<EventLoop::Id> EventLoop::Watch(int fd, uint32_t events,
                                               FdCallback callback) {
  if (IsForeign()) return absl::FailedPreconditionError("watch after a fork");
  base::MutexLock lock(&mu_);
  const Id id = next_id_++;
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
    return base::ErrnoStatus(errno, "epoll_ctl");
  }
  watched_[id] = {fd, std::make_shared<FdCallback>(std::move(callback))};
  return id;
}

void EventLoop::Unwatch(Id id) {
  if (IsForeign()) return;
  std::shared_ptr<FdCallback> callback;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  auto it = watched_.find(id);
  if (it == watched_.end()) return;
  epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, it->second.fd, nullptr);
  callback = std::move(it->second.callback);
  watched_.erase(it);
}

void EventLoop::SetEvents(Id id, uint32_t events) {
  if (IsForeign()) return;
  base::MutexLock lock(&mu_);
  auto it = watched_.find(id);
  if (it == watched_.end()) return;
  epoll_event event = {};
  event.events = events;
  event.data.u64 = id;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, it->second.fd, &event);
}

EventLoop::Id EventLoop::RunAfter(absl::Duration delay, Callback callback) {
  if (IsForeign()) return 0;
  const TimePoint when =
      std::chrono::steady_clock::now() +
      absl::ToChronoNanoseconds(std::min(delay, kLongestDelay));
  Id id;
  bool is_first;
  {
    base::MutexLock lock(&mu_);
    id = next_id_++;
    timers_[{when, id}] = std::move(callback);
    timer_times_[id] = when;
    is_first = timers_.begin()->first.second == id;
  }
  // Wakes the thread if this timer is the earliest. Otherwise the thread wakes
  // for an earlier timer, and then checks this timer. The loop's own thread
  // needs no wake-up, because it checks all timers before it sleeps.
  if (is_first && !IsCurrent()) Wake();
  return id;
}

bool EventLoop::Cancel(Id id) {
  if (IsForeign()) return false;
  Callback callback;  // destroyed outside the lock
  base::MutexLock lock(&mu_);
  auto it = timer_times_.find(id);
  if (it == timer_times_.end()) return false;
  auto timer = timers_.find({it->second, id});
  callback = std::move(timer->second);
  timers_.erase(timer);
  timer_times_.erase(it);
  return true;
}

void EventLoop::Post(Callback callback) {
  if (IsForeign()) return;
  {
    base::MutexLock lock(&mu_);
    posted_.push_back(std::move(callback));
  }
  if (!IsCurrent()) Wake();
}

void EventLoop::Wake() {
  // Ignores a failure, which means that the counter is full. The loop is awake
  // in this case.
  (void)eventfd_write(wake_.get(), 1);
}

void EventLoop::Run() {
  const auto look = [this] { return Turn(0); };
  const auto sleep = [this] { return Turn(WaitMillis()); };
  for (;;) {
    if (spinner_ == nullptr) {
      sleep();
    } else {
      spinner_->Wait(HasWatches(), look, sleep);
    }
  }
}

bool EventLoop::HasWatches() {
  base::MutexLock lock(&mu_);
  return !watched_.empty();
}

// Runs one turn of the loop. Returns true if there was anything to do.
bool EventLoop::Turn(int wait_millis) {
  epoll_event events[kEventsPerWait];
  const int count =
      epoll_wait(epoll_.get(), events, kEventsPerWait, wait_millis);
  for (int i = 0; i < count; ++i) {
    if (events[i].data.u64 != kWakeId) {
      DispatchFd(events[i].data.u64, events[i].events);
      continue;
    }
    eventfd_t ignored;
    (void)eventfd_read(wake_.get(), &ignored);
  }
  const bool any_posted = RunPosted();
  const bool any_due = RunDueTimers();
  return count > 0 || any_posted || any_due;
}

void EventLoop::DispatchFd(Id id, uint32_t events) {
  std::shared_ptr<FdCallback> callback;
  {
    base::MutexLock lock(&mu_);
    auto it = watched_.find(id);
    if (it == watched_.end()) return;  // unwatched since epoll_wait
    callback = it->second.callback;
  }
  (*callback)(events);
}

bool EventLoop::RunPosted() {
  std::vector<Callback> batch;
  {
    base::MutexLock lock(&mu_);
    batch.swap(posted_);
  }
  for (Callback& callback : batch) {
    callback();
    callback = nullptr;
  }
  return !batch.empty();
}

bool EventLoop::RunDueTimers() {
  const TimePoint now = std::chrono::steady_clock::now();
  for (bool any = false;; any = true) {
    Callback callback;
    {
      base::MutexLock lock(&mu_);
      if (timers_.empty() || timers_.begin()->first.first > now) return any;
      auto first = timers_.begin();
      callback = std::move(first->second);
      timer_times_.erase(first->first.second);
      timers_.erase(first);
    }
    callback();
  }
}

int EventLoop::WaitMillis() {
  base::MutexLock lock(&mu_);
  if (!posted_.empty()) return 0;
  if (timers_.empty()) return -1;
  const int64_t left =
      std::chrono::duration_cast<std::chrono::milliseconds>(
          timers_.begin()->first.first - std::chrono::steady_clock::now())
          .count();
  // Rounds up, because otherwise the loop would spin with waits of 0 ms in the
  // last millisecond. Waits for at most a minute, which fits into an int.
  const int64_t millis = left + 1;
  return static_cast<int>(
      std::min<int64_t>(std::max<int64_t>(millis, 0), 60 * 1000));
}

}  // namespace progress
}  // namespace penstock
