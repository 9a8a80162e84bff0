#include "ps/etcd/cancel.h"

namespace penstock::ps::etcd {

void Cancel::Now() {
  absl::MutexLock lock(&mu_);
  is_cancelled_ = true;
  for (grpc::ClientContext* const call : calls_) call->TryCancel();
  changed_.Signal();
}

bool Cancel::is_cancelled() const {
  absl::MutexLock lock(&mu_);
  return is_cancelled_;
}

bool Cancel::WaitUntil(absl::Time time) {
  absl::MutexLock lock(&mu_);
  while (!is_cancelled_ && base::SteadyNow() < time) {
    changed_.WaitUntil(&mu_, time);
  }
  if (is_cancelled_) changed_.Signal();  // wakes another thread that waits
  return !is_cancelled_;
}

Cancel::Scope::Scope(Cancel* cancel, grpc::ClientContext* call)
    : cancel_(cancel), call_(call) {
  if (cancel_ == nullptr) return;
  absl::MutexLock lock(&cancel_->mu_);
  if (cancel_->is_cancelled_) call_->TryCancel();
  cancel_->calls_.insert(call_);
}

Cancel::Scope::~Scope() {
  if (cancel_ == nullptr) return;
  absl::MutexLock lock(&cancel_->mu_);
  cancel_->calls_.erase(call_);
}

}  // namespace penstock::ps::etcd
