#include "transport/grpc/polling/before_wait.h"

namespace penstock {
namespace core {
namespace {

thread_local bool t_is_set = false;

std::weak_ptr<BeforeWait>& Work() {
  thread_local std::weak_ptr<BeforeWait> work;
  return work;
}

}  // namespace

void BeforeWait::Set(const std::shared_ptr<BeforeWait>& work) {
  Work() = work;
  t_is_set = true;
}

bool BeforeWait::IsSet() { return t_is_set; }

void BeforeWait::Run() {
  if (!t_is_set) return;
  t_is_set = false;
  const std::shared_ptr<BeforeWait> work = Work().lock();
  Work().reset();
  if (work != nullptr) work->OnWait();
}

}  // namespace core
}  // namespace penstock
