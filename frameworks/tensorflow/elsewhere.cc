#include "frameworks/tensorflow/elsewhere.h"

#include <utility>

#include "tensorflow/core/platform/env.h"

namespace penstock {
namespace tensorflow {
namespace {

// What takes longer to copy than a thread takes to start is not copied on the
// thread on which all answers come.
constexpr size_t kLargeBytes = 1 << 20;

}  // namespace

void HereOrElsewhere(size_t bytes, std::function<void()> work) {
  if (bytes < kLargeBytes) return work();
  ::tensorflow::Env::Default()->SchedClosure(std::move(work));
}

}  // namespace tensorflow
}  // namespace penstock
