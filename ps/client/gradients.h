// The gradients of a step, and what each server gets of them.

#ifndef PENSTOCK_PS_CLIENT_GRADIENTS_H_
#define PENSTOCK_PS_CLIENT_GRADIENTS_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ps/client/connection.h"
#include "ps/client/sparse_rows.h"
#include "ps/optim/workers.h"
#include "ps/sparse/hash.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// Tables that are left out have no gradient; but of those that share a pack,
// all have one or none.
struct StepGradients {
  tensor::Bundle dense;            // by table, of its shape
  std::vector<GradientRows> rows;  // each table once
};

// Compresses the gradients of one part, step after step, and may keep what it
// has left out for later ones. One thread at a time calls it.
class GradientCoder {
 public:
  virtual ~GradientCoder() = default;

  // Returns what is sent; ps.proto says what a server takes.
  virtual absl::StatusOr<std::vector<tensor::Tensor>> Encode(
      const tensor::Tensor& gradient, uint64_t step) = 0;

  // What Encode() has returned will never be applied: the push was late or was
  // refused. Comes before a later Encode(). Where nobody knows, as after a
  // deadline, it does not come.
  virtual void TakeBack(absl::Span<const tensor::Tensor> sent) = 0;
};

// Makes the coder of a part of a dense table; null: its gradients are sent as
// they are. The part's name and shape tell parts of one table apart.
using MakeGradientCoder =
    std::function<absl::StatusOr<std::unique_ptr<GradientCoder>>(
        const std::string& table, const PlacedPart& part)>;

// What one server gets.
struct ServerGradients {
  tensor::Bundle bundle;  // as in PushRequest
  // The parts in it that a coder has made.
  struct Coded {
    size_t part;
    std::vector<tensor::Tensor> tensors;
  };
  std::vector<Coded> coded;
};

// Thread-safe, but for Split(), which is for one thread at a time.
class GradientSplitter {
 public:
  GradientSplitter(std::shared_ptr<const Connection> connection,
                   sparse::HashKey hash);
  // Before the first Split(). `make` may be empty. Returns what it returns.
  absl::Status MakeCoders(const MakeGradientCoder& make);

  // Returns what each server gets. Returns INVALID_ARGUMENT, which names the
  // table, as SplitTables() and SplitRows() do, and for a table that comes
  // twice or that the model does not have; and what a coder returns. Where
  // there are several servers, also for a gradient that a server would refuse
  // by optim::CheckGradient(): others would apply their parts of the step.
  absl::StatusOr<std::vector<ServerGradients>> Split(
      const StepGradients& gradients, uint64_t step);

  // They did not count.
  void TakeBack(std::vector<ServerGradients::Coded> coded);

 private:
  absl::Status AddDense(const tensor::Bundle& dense, uint64_t step,
                        std::vector<ServerGradients>* servers);
  absl::Status AddRows(const GradientRows& rows,
                       std::vector<ServerGradients>* servers);
  absl::Status CheckElements(const std::string& table,
                             const tensor::Tensor& gradients,
                             tensor::DType value) const;

  const std::shared_ptr<const Connection> connection_;
  const sparse::HashKey hash_;
  const optim::Workers workers_;
  std::vector<std::unique_ptr<GradientCoder>> coders_;  // by part; or null
  absl::Mutex mu_;
  std::vector<ServerGradients::Coded> returned_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_GRADIENTS_H_
