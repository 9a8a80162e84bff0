// The model of a benchmark, and the data of each step.

#ifndef PENSTOCK_BENCH_PS_TRAINING_WORKLOAD_H_
#define PENSTOCK_BENCH_PS_TRAINING_WORKLOAD_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/client/gradients.h"
#include "ps/client/pull.h"
#include "ps/model/model.h"
#include "tensor_service/tensor.h"

namespace penstock::bench {

struct Sizes {
  int64_t elements = int64_t{16} << 20;  // all dense values together
  int64_t variables = 1000;              // small values, of 256 B
  uint64_t rows = 1'000'000;             // of a sparse table
  size_t batch = 8192;                   // ids per step
  double zipf = 1.1;
};

// The learning rate. Gradients are 1 and the rate is a power of two, so an f32
// value shows exactly how many steps were applied: each adds -kRate.
inline constexpr float kRate = 1.0F / 1024;

inline constexpr const char* kWorkloads[] = {"dense", "dense4", "small",
                                             "uniform", "zipf"};

// A workload. Immutable. All tensors are in memory of
// tensor::DefaultAllocator().
class Workload {
 public:
  // Makes a workload. `name` is one of kWorkloads: one dense table of
  // Sizes::elements elements, four tables of the same total size, many small
  // tables, or a sparse table with ids drawn uniformly or by Zipf's law.
  static absl::StatusOr<Workload> Make(absl::string_view name,
                                       const Sizes& sizes);

  const ps::Model& model() const { return model_; }
  bool is_sparse() const { return !fill_.empty(); }
  // Returns the initial values of the dense tables: zeroes.
  absl::StatusOr<tensor::Bundle> FirstValues() const;
  // Returns the pushes that create all rows of a sparse table.
  const std::vector<ps::StepGradients>& fill() const { return fill_; }
  // Return the request and the gradients of a step. The steps of a sparse table
  // rotate through several batches.
  const ps::PullSpec& PullOf(uint64_t step) const {
    return pulls_[step % pulls_.size()];
  }
  const ps::StepGradients& PushOf(uint64_t step) const {
    return pushes_[step % pushes_.size()];
  }

 private:
  Workload() = default;

  absl::Status AddDense(int64_t tables, int64_t elements);
  absl::Status AddSparse(const Sizes& sizes, bool is_skewed);

  ps::Model model_;
  std::vector<ps::StepGradients> fill_;
  std::vector<ps::PullSpec> pulls_;
  std::vector<ps::StepGradients> pushes_;
};

}  // namespace penstock::bench

#endif  // PENSTOCK_BENCH_PS_TRAINING_WORKLOAD_H_
