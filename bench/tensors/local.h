// Measures how long it takes to copy and read the tensors of one training step
// within one process.

#ifndef PENSTOCK_BENCH_TENSORS_LOCAL_H_
#define PENSTOCK_BENCH_TENSORS_LOCAL_H_

#include "absl/status/statusor.h"
#include "bench/tensors/report.h"
#include "tensor_service/tensor.h"

namespace penstock::bench {

// A copier of tensors to other tensors of the same shapes, by memcpy.
class Copier {
 public:
  // Makes a copier. Returns the allocator's error.
  static absl::StatusOr<Copier> Make(const tensor::Bundle& variables);

  // Copies the variables, and returns the sum of the copies. Stores the times
  // since `begin_ns` in `step`.
  uint64_t Run(const tensor::Bundle& variables, int64_t begin_ns, Step* step);

 private:
  tensor::Bundle copies_;
};

// Reads the tensors, and returns their sum. Stores the time since `begin_ns` in
// `step`.
uint64_t ReadInPlace(const tensor::Bundle& variables, int64_t begin_ns,
                     Step* step);

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_TENSORS_LOCAL_H_
