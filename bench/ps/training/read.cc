#include "bench/ps/training/read.h"

#include <atomic>

#include "bench/tensors/sum.h"

namespace penstock::bench {

uint64_t ReadAll(absl::string_view bytes, const ps::optim::Workers& workers) {
  std::atomic<uint64_t> sum{0};
  workers.ForEach((bytes.size() + kTaskBytes - 1) / kTaskBytes, [&](size_t i) {
    sum += SumOf(bytes.substr(i * kTaskBytes, kTaskBytes));
  });
  return sum;
}

}  // namespace penstock::bench
