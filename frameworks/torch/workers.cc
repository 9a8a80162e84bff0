#include "frameworks/torch/workers.h"

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "transport/base/mutex.h"

namespace penstock {
namespace pytorch {

Workers::~Workers() {
  std::vector<std::thread> threads;
  {
    base::MutexLock lock(&mu_);
    stopping_ = true;
    threads.swap(threads_);
  }
  changed_.notify_all();
  for (std::thread& thread : threads) thread.join();
}

void Workers::Run(std::function<void()> task) {
  base::MutexLock lock(&mu_);
  tasks_.push_back(std::move(task));
  if (tasks_.size() > idle_) {
    threads_.emplace_back([this] { Work(); });
  } else {
    changed_.notify_one();
  }
}

void Workers::Work() {
  base::MutexLock lock(&mu_);
  for (;;) {
    while (tasks_.empty()) {
      if (stopping_) return;
      ++idle_;
      changed_.wait(mu_);
      --idle_;
    }
    const std::function<void()> task = std::move(tasks_.front());
    tasks_.pop_front();
    mu_.Unlock();
    task();
    mu_.Lock();
  }
}

}  // namespace pytorch
}  // namespace penstock
