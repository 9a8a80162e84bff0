#include "frameworks/tensorflow/run_on_pool.h"

#include <utility>

#include "tensorflow/core/platform/env.h"

namespace penstock {
namespace tensorflow {
namespace {

// The minimum size in bytes of a copy that takes longer than the start of a
// thread. Such a copy must not block the thread that receives all answers.
constexpr size_t kLargeBytes = 1 << 20;

}  // namespace

void RunHereOrOnPool(size_t bytes, std::function<void()> work) {
  if (bytes < kLargeBytes) return work();
  ::tensorflow::Env::Default()->SchedClosure(std::move(work));
}

}  // namespace tensorflow
}  // namespace penstock
