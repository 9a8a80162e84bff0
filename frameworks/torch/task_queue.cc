#include "frameworks/torch/task_queue.h"

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/functional/function_ref.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {

void TaskQueue::Add(Task task) {
  AddWithSequel([task = std::move(task)]() -> Task {
    task();
    return nullptr;
  });
}

void TaskQueue::AddWithSequel(TaskWithSequel task) {
  {
    base::MutexLock lock(&mu_);
    tasks_.push_back({next_ticket_++, std::move(task)});
    if (draining_) return;
    draining_ = true;
  }
  workers_->Run([self = shared_from_this()] { self->Drain(); });
}

void TaskQueue::EndTurn() {
  ++turn_;
  if (waiters_ > 0) changed_.notify_all();
}

bool TaskQueue::RunNext() {
  if (tasks_.empty() || tasks_.front().ticket != turn_) return false;
  TaskWithSequel task = std::move(tasks_.front().task);
  tasks_.pop_front();
  mu_.Unlock();
  Task sequel = task();
  mu_.Lock();
  EndTurn();
  mu_.Unlock();
  if (sequel != nullptr) sequel();
  // Destroys the tasks without the lock, because the objects that they hold may
  // run Python code.
  sequel = nullptr;
  task = nullptr;
  mu_.Lock();
  return true;
}

void TaskQueue::RunHere(absl::FunctionRef<void()> run) {
  {
    base::MutexLock lock(&mu_);
    const uint64_t ticket = next_ticket_++;
    while (turn_ != ticket) {
      if (RunNext()) continue;
      ++waiters_;
      changed_.wait(mu_);
      --waiters_;
    }
  }
  run();
  base::MutexLock lock(&mu_);
  EndTurn();
}

void TaskQueue::WaitUntil(absl::FunctionRef<bool()> done) {
  for (;;) {
    uint64_t seen;
    {
      base::MutexLock lock(&mu_);
      seen = turn_;
    }
    if (done()) return;
    base::MutexLock lock(&mu_);
    if (RunNext()) continue;
    ++waiters_;
    while (turn_ == seen) changed_.wait(mu_);
    --waiters_;
  }
}

bool TaskQueue::idle() {
  base::MutexLock lock(&mu_);
  return turn_ == next_ticket_;
}

void TaskQueue::Drain() {
  base::MutexLock lock(&mu_);
  while (!tasks_.empty()) {
    if (RunNext()) continue;
    ++waiters_;
    changed_.wait(mu_);
    --waiters_;
  }
  draining_ = false;
}

}  // namespace pytorch
}  // namespace penstock
