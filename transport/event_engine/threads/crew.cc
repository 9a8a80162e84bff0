#include "transport/event_engine/threads/crew.h"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <condition_variable>
#include <utility>

#include "transport/progress/detached_thread.h"
#include "transport/progress/fork_count.h"
#include "transport/progress/spinner.h"

namespace penstock {
namespace event_engine {
namespace {

// Limits the tasks that the leader runs before it polls again.
constexpr int kTasksPerTurn = 16;
// The number of waiting tasks from which on another thread helps. Waking a
// thread takes as long as a few tasks.
constexpr size_t kManyTasks = 8;
// Limits the threads that stay parked.
constexpr size_t kMaxParked = 8;
// Limits the guard's consecutive ticks without work. After them, the guard
// sleeps.
constexpr int kIdleTicks = 50;

thread_local const Crew* current = nullptr;

struct OfProcess {
  base::Mutex mu;
  Crew* crew = nullptr;
  uint32_t fork_count = 0;
};

void FutexWait(std::atomic<int>* word, int value) {
  syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void FutexWake(std::atomic<int>* word) {
  syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace

constexpr int Crew::kTickMillis;
constexpr size_t Crew::kMaxThreads;

// A thread of the crew.
class Crew::Worker {
 public:
  Worker(Crew* crew, progress::PollSet* set, progress::PollingMode mode)
      : crew(crew), spinner(set, mode) {}

  Crew* const crew;
  progress::Spinner spinner;
  std::atomic<uint64_t> beat{0};  // odd while in a task
  // Set under the crew's lock.
  bool is_called = false;
  std::condition_variable_any called;
};

absl::StatusOr<Crew*> Crew::Get(progress::PollingMode mode) {
  // Takes no precautions for forks: only the set-up of channels and servers
  // takes this lock, and a program does not fork during the set-up.
  static OfProcess* const process = new OfProcess;
  base::MutexLock lock(&process->mu);
  if (process->crew != nullptr &&
      process->fork_count == progress::ForkCount()) {
    return process->crew;
  }
  absl::StatusOr<Crew*> made = Create(progress::PollSet::Get(), mode);
  if (!made.ok()) return made;
  process->crew = *made;
  process->fork_count = progress::ForkCount();
  return made;
}

absl::StatusOr<Crew*> Crew::Create(progress::PollSet* set,
                                   progress::PollingMode mode) {
  absl::StatusOr<std::unique_ptr<Watches>> watches = Watches::Create();
  if (!watches.ok()) return watches.status();
  // Never deletes the crew. If one thread cannot be started, another one may
  // already be running.
  auto* const crew = new Crew(set, mode, *std::move(watches));
  base::MutexLock lock(&crew->mu_);
  absl::StatusOr<Worker*> first = crew->ParkedOrNewLocked();
  if (!first.ok()) return first.status();
  crew->leader_ = *first;
  absl::Status guarded =
      progress::StartDetachedThread("penstock-guard", &GuardMain, crew);
  if (!guarded.ok()) return guarded;
  return crew;
}

Crew::Crew(progress::PollSet* set, progress::PollingMode mode,
           std::unique_ptr<Watches> watches)
    : set_(set),
      mode_(mode),
      watches_(std::move(watches)),
      max_helpers_(set->max_spinners() - 1) {}

bool Crew::IsCurrent() const { return current == this; }

void* Crew::WorkerMain(void* worker) {
  auto* const me = static_cast<Worker*>(worker);
  current = me->crew;
  me->crew->Work(me);
  delete me;
  return nullptr;
}

void* Crew::GuardMain(void* crew) {
  static_cast<Crew*>(crew)->Guard();
  return nullptr;
}

void Crew::Run(Task task) {
  size_t waiting;
  {
    base::MutexLock lock(&mu_);
    tasks_.push_back(std::move(task));
    waiting = waiting_.fetch_add(1) + 1;  // before a check of sleeps_
  }
  if (sleeps_.exchange(false)) {
    watches_->Wake();
  } else if (waiting > kManyTasks) {
    CallHelp();
  }
}

void Crew::CallHelp() {
  if (helpers_.load(std::memory_order_relaxed) >= max_helpers_) return;
  base::MutexLock lock(&mu_);
  absl::StatusOr<Worker*> helper = ParkedOrNewLocked();
  if (!helper.ok()) return;  // the others run the tasks
  ++helpers_;
  (*helper)->is_called = true;
  (*helper)->called.notify_one();
}

absl::StatusOr<Crew::Worker*> Crew::ParkedOrNewLocked() {
  if (!parked_.empty()) {
    Worker* const worker = parked_.back();
    parked_.pop_back();
    return worker;
  }
  if (threads_ >= kMaxThreads) {
    return absl::ResourceExhaustedError("all threads are in tasks");
  }
  auto worker = std::make_unique<Worker>(this, set_, mode_);
  absl::Status started = progress::StartDetachedThread(
      "penstock-engine", &WorkerMain, worker.get());
  if (!started.ok()) return started;
  ++threads_;
  return worker.release();
}

void Crew::Work(Worker* me) {
  do {
    while (leader_.load() == me) Lead(me);
    while (leader_.load() != me && RunTasks(me)) continue;
  } while (Park(me));
}

// Runs no task while this thread spins. If a task blocked, no thread would poll
// the paths, and no doorbell would ring.
void Crew::Lead(Worker* me) {
  const bool watches = watches_->has_sockets();
  const auto look = [this, watches] {
    return waiting_.load(std::memory_order_relaxed) > 0 ||
           (watches && watches_->Look());
  };
  me->spinner.Wait(watches, look, [this] { return Sleep(); });
  // Adds a poll as a task. The spinner has left input for which no doorbell
  // rings; the next task may block, and the next leader may sleep without a
  // poll.
  if (me->spinner.TakeLeftInput()) Run([this] { PollLeftInput(); });
  RunTasks(me);
}

void Crew::PollLeftInput() {
  if (set_->PollAll()) Run([this] { PollLeftInput(); });
}

bool Crew::RunTasks(Worker* me) {
  const bool leads = leader_.load(std::memory_order_relaxed) == me;
  for (int i = 0; i < kTasksPerTurn; ++i) {
    if (!RunOne(me)) return i > 0;
    if (leads && leader_.load(std::memory_order_relaxed) != me) return true;
  }
  return true;
}

bool Crew::RunOne(Worker* me) {
  if (waiting_.load(std::memory_order_relaxed) == 0) return false;
  Task task;
  {
    base::MutexLock lock(&mu_);
    if (tasks_.empty()) return false;
    task = std::move(tasks_.front());
    tasks_.pop_front();
    waiting_.fetch_sub(1);
  }
  me->beat.fetch_add(1, std::memory_order_relaxed);
  task();
  task = nullptr;  // a destructor may block, too
  me->beat.fetch_add(1, std::memory_order_relaxed);
  return true;
}

// Writes `sleeps_` before reading the tasks; the caller of Run() does the
// reverse. Therefore either this thread sees a new task, or the caller sees
// that this thread sleeps.
//
// The guard may replace a leader that has just ended its task and is about to
// sleep. The new leader then wakes the former leader, and does not sleep until
// the former leader is gone. Otherwise the former leader would clear sleeps_
// late, and Run() would not wake the new leader.
bool Crew::Sleep() {
  if (asleep_.exchange(true)) {
    watches_->Wake();
    sched_yield();
    return true;
  }
  sleeps_.store(true);
  if (waiting_.load() == 0) watches_->Sleep();
  sleeps_.store(false);
  asleep_.store(false);
  if (guard_rests_.load() != 0) WakeGuard();
  return true;
}

bool Crew::Park(Worker* me) {
  base::MutexLock lock(&mu_);
  if (me->is_called) --helpers_;
  me->is_called = false;
  if (leader_.load() == me) return true;
  if (parked_.size() >= kMaxParked) {
    --threads_;
    return false;
  }
  parked_.push_back(me);
  while (!me->is_called && leader_.load() != me) me->called.wait(mu_);
  return true;
}

void Crew::Replace() {
  base::MutexLock lock(&mu_);
  absl::StatusOr<Worker*> next = ParkedOrNewLocked();
  if (!next.ok()) return;  // tries again at the next tick
  leader_.store(*next);
  (*next)->called.notify_one();
}

void Crew::Guard() {
  int idle = 0;
  for (;;) {
    const timespec tick = {0, kTickMillis * 1000000};
    nanosleep(&tick, nullptr);
    if (LeaderIsStuck()) Replace();
    idle = sleeps_.load() ? idle + 1 : 0;
    if (idle < kIdleTicks) continue;
    GuardRests();
    idle = 0;
  }
}

bool Crew::LeaderIsStuck() {
  Worker* const leader = leader_.load();
  // Uses `leader` without a check, because only this thread makes another
  // worker the leader.
  const uint64_t beat = leader->beat.load(std::memory_order_relaxed);
  const bool stuck =
      leader == seen_leader_ && beat == seen_beat_ && beat % 2 == 1;
  seen_leader_ = leader;
  seen_beat_ = beat;
  return stuck;
}

void Crew::GuardRests() {
  guard_rests_.store(1);
  while (guard_rests_.load() == 1 && sleeps_.load()) {
    FutexWait(&guard_rests_, 1);
  }
  guard_rests_.store(0);
}

void Crew::WakeGuard() {
  guard_rests_.store(0);
  FutexWake(&guard_rests_);
}

}  // namespace event_engine
}  // namespace penstock
