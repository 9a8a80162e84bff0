// Splits the gradients of a step among the servers.

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
#include "ps/client/sparse_rows.h"
#include "ps/client/training_connection.h"
#include "ps/optim/workers.h"
#include "ps/sparse/hash.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The gradients of a step. A table may be left out, unless another table of its
// pack has a gradient.
struct StepGradients {
  tensor::Bundle dense;            // by table, of its shape
  std::vector<GradientRows> rows;  // each table once
};

// A compressor of the gradients of one part, step after step. A coder may keep
// omitted gradients for later steps. One thread at a time calls a coder.
class GradientCoder {
 public:
  virtual ~GradientCoder() = default;

  // Returns the tensors to send. ps.proto defines the forms that a server
  // accepts.
  virtual absl::StatusOr<std::vector<tensor::Tensor>> Encode(
      const tensor::Tensor& gradient, uint64_t step) = 0;

  // Returns tensors of Encode() to the coder, because their push was late or
  // refused and will never be applied. Called before the next Encode(). Not
  // called if the outcome is unknown, as after a deadline.
  virtual void TakeBack(absl::Span<const tensor::Tensor> sent) = 0;
};

// A function that makes the coder of a part of a dense table. Returns null to
// send the part's gradients uncompressed. The part's name and shape distinguish
// the parts of one table.
using MakeGradientCoder =
    std::function<absl::StatusOr<std::unique_ptr<GradientCoder>>(
        const std::string& table, const PlacedPart& part)>;

// The gradients that go to one server.
struct ServerGradients {
  tensor::Bundle bundle;  // as in PushRequest
  // The tensors of `bundle` that a coder has made for a part.
  struct Coded {
    size_t part;
    std::vector<tensor::Tensor> tensors;
  };
  std::vector<Coded> coded;
};

// Splits the gradients of a step by server. Thread-safe, except that one thread
// at a time may call Split().
class GradientSplitter {
 public:
  GradientSplitter(std::shared_ptr<const TrainingConnection> connection,
                   sparse::HashKey hash);
  // Makes all coders. Call before the first Split(). `make` may be empty.
  // Returns the first error of `make`.
  absl::Status MakeCoders(const MakeGradientCoder& make);

  // Returns the gradients for each server. Returns the errors of SplitTables(),
  // SplitRows() and the coders. Returns INVALID_ARGUMENT, which names the
  // table, for a table given twice or missing in the model. With several
  // servers, also refuses gradients that optim::CheckGradient() refuses:
  // otherwise one server would refuse its part of the step and others would
  // apply theirs.
  absl::StatusOr<std::vector<ServerGradients>> Split(
      const StepGradients& gradients, uint64_t step);

  // Returns tensors to their coders, because their push was not counted.
  void TakeBack(std::vector<ServerGradients::Coded> coded);

 private:
  absl::Status AddDense(const tensor::Bundle& dense, uint64_t step,
                        std::vector<ServerGradients>* servers);
  absl::Status AddRows(const GradientRows& rows,
                       std::vector<ServerGradients>* servers);
  absl::Status CheckElements(const std::string& table,
                             const tensor::Tensor& gradients,
                             tensor::DType value) const;

  const std::shared_ptr<const TrainingConnection> connection_;
  const sparse::HashKey hash_;
  const optim::Workers workers_;
  std::vector<std::unique_ptr<GradientCoder>> coders_;  // by part; or null
  absl::Mutex mu_;
  std::vector<ServerGradients::Coded> returned_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_CLIENT_GRADIENTS_H_
