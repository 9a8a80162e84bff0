#include "ps/client/repeated_call.h"

#include <utility>

namespace penstock::ps {

RepeatedCall::RepeatedCall(absl::Duration interval, std::function<void()> call)
    : interval_(interval),
      call_(std::move(call)),
      thread_([this] { ThreadLoop(); }) {}

RepeatedCall::~RepeatedCall() {
  {
    absl::MutexLock lock(&mu_);
    stop_ = true;
    wake_.Signal();
  }
  thread_.join();
}

void RepeatedCall::ThreadLoop() {
  while (true) {
    {
      absl::MutexLock lock(&mu_);
      const absl::Time next = base::SteadyNow() + interval_;
      while (!stop_ && base::SteadyNow() < next) wake_.WaitUntil(&mu_, next);
      if (stop_) return;
    }
    call_();
  }
}

}  // namespace penstock::ps
