#include "frameworks/torch/work.h"

#include <chrono>
#include <exception>
#include <functional>
#include <mutex>

#include "frameworks/torch/task_queue.h"
#include "frameworks/torch/torch_headers.h"
#include "frameworks/torch/workers.h"

namespace penstock {
namespace pytorch {

bool Operation::wait(std::chrono::milliseconds timeout) {
  if (timeout != kNoTimeout) return Work::wait(timeout);
  if (queue_ == nullptr) return Work::wait(description_.timeout);
  if (!isCompleted()) queue_->WaitUntil([this] { return isCompleted(); });
  const std::exception_ptr error = exception();
  if (error) std::rethrow_exception(error);
  return true;
}

bool Operation::has_future() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return future_ != nullptr;
}

void Operation::Mark(c10::ivalue::Future* future) {
  const std::exception_ptr error = exception();
  if (error) {
    future->setError(error);
  } else {
    future->markCompleted(at::IValue(outputs_));
  }
}

void Operation::CompleteFuture() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (marked_ || !future_) return;
    marked_ = true;
    future = future_;
  }
  Mark(future.get());
}

c10::intrusive_ptr<c10::ivalue::Future> Operation::getFuture() {
  c10::intrusive_ptr<c10::ivalue::Future> future;
  bool complete = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!future_) {
      future_ = c10::make_intrusive<c10::ivalue::Future>(
          c10::ListType::create(c10::TensorType::get()));
    }
    future = future_;
    complete = completed_ && !marked_;
    if (complete) marked_ = true;
  }
  if (complete) Mark(future.get());
  return future;
}

std::function<void()> CallBack(Workers* workers,
                               const c10::intrusive_ptr<Operation>& operation) {
  if (!operation->has_future()) return nullptr;
  std::function<void()> complete = [operation] { operation->CompleteFuture(); };
  return workers->TryRun(complete) ? nullptr : complete;
}

}  // namespace pytorch
}  // namespace penstock
