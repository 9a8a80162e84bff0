// The dense values of one server, and their optimizer steps.

#ifndef PENSTOCK_PS_SERVER_DENSE_PARTS_H_
#define PENSTOCK_PS_SERVER_DENSE_PARTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/optional.h"
#include "absl/types/span.h"
#include "ps/dense/dense_part.h"
#include "ps/optim/optimizer.h"
#include "ps/optim/workers.h"
#include "ps/server/gradients.h"
#include "ps/server/local_model.h"
#include "ps/server/parts.h"
#include "ps/server/report.h"
#include "tensor_service/allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// The parts of one server: their first values, memory and optimizer steps.
//
// Thread-safe, except for Apply(), which one thread at a time may call.
class DenseParts {
 public:
  // The optimizer of each table, by the table's index in the model.
  using Optimizers = std::vector<std::shared_ptr<const optim::Optimizer>>;
  struct Options {
    // The allocator of values that are sent to workers. Outlives all readers.
    // Null: tensor::DefaultAllocator().
    tensor::Allocator* allocator = nullptr;
    // Limits the bytes of the values, their next versions and slots. The rest
    // of this memory may hold older versions that readers still use. Older
    // versions may always use as much memory as the values and their next
    // versions, even if the rest is less.
    size_t max_bytes = 0;
  };

  // Makes the parts, which have no values yet. Returns RESOURCE_EXHAUSTED if
  // they exceed max_bytes. `model` and `workers` outlive this object.
  static absl::StatusOr<std::unique_ptr<DenseParts>> Create(
      const LocalModel* model, Optimizers optimizers,
      const optim::Workers* workers, const Options& options);

  const std::vector<Part>& layout() const { return layout_; }
  // Return the index of a part. Find() returns INVALID_ARGUMENT if there is no
  // such part.
  absl::StatusOr<size_t> Find(const std::string& name) const;
  absl::optional<size_t> IndexOf(const std::string& name) const;

  // Sets the first values of parts to copies of `values`, by the parts' names.
  // A part that already has a value keeps it. Returns INVALID_ARGUMENT, with
  // the name of the part, if this server does not have the part, or if a value
  // has another type or shape, or is not finite.
  absl::Status Initialize(const tensor::Bundle& values);
  // Returns uninitialized memory for a part's value and slots. The caller fills
  // the memory and passes it to Restore(). Returns RESOURCE_EXHAUSTED if there
  // is no memory.
  absl::StatusOr<DensePart::Snapshot> MakeRoom(size_t part) const;
  // Sets a part's value, slots and step to those of a checkpoint.
  absl::Status Restore(size_t part, DensePart::Snapshot snapshot);
  // Sets a part from a checkpoint that lacks some pieces of the part. `missing`
  // has the indices of these pieces in Part::pieces. The part has a value once
  // Initialize() has set the missing pieces.
  void RestoreRest(size_t part, DensePart::Snapshot snapshot,
                   std::vector<size_t> missing);
  // Returns the bytes of one version of all values.
  uint64_t value_bytes() const { return value_bytes_; }
  // Returns true once all parts have values, and so can be read and trained.
  bool has_values() const { return missing_parts_ == 0; }

  // Adds the values of `parts` to `bundle`, in this order. Values of parts with
  // the same policy are of one point in time. Returns RESOURCE_EXHAUSTED if
  // older versions are at their limit.
  absl::Status Read(absl::Span<const size_t> parts, tensor::Bundle* bundle);
  // Checks the gradient of one part in a push, and returns the gradient.
  // Returns INVALID_ARGUMENT for a wrong type or shape, or an element that is
  // not finite.
  absl::StatusOr<DenseGradient> Check(
      size_t part, absl::Span<const tensor::NamedTensor> named) const;
  // Applies the mean of the pushes to the parts of a policy, as
  // Tables::Apply() does.
  absl::Status Apply(size_t policy, absl::Span<Gradients* const> pushes);

  // Adds to the rows, bytes and steps in the reports of the tables, in the
  // order of the model. Adds nothing before has_values().
  void AddTo(std::vector<TableReport>* reports) const;
  // Returns the part with index `at`. For the applying thread, and for readers
  // of counters.
  const DensePart& part(size_t at) const { return *parts_[at]; }

 private:
  // A part whose checkpoint lacks some pieces.
  struct Incomplete {
    DensePart::Snapshot snapshot;
    std::vector<size_t> missing;
  };

  DenseParts(const LocalModel* model, Optimizers optimizers,
             const optim::Workers* workers, const Options& options);

  absl::Status CheckBytes();
  DensePart::Options OptionsOf(size_t part) const;
  // Returns the restored part. `first` provides the pieces that the checkpoint
  // lacks.
  absl::StatusOr<std::unique_ptr<DensePart>> Complete(size_t part,
                                                      const DensePart& first,
                                                      Incomplete rest) const;
  void SetPart(size_t at, std::unique_ptr<DensePart> part)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(setup_mu_);
  // Returns the bytes in memory of all versions of the values.
  size_t VersionBytes() const;
  // Returns RESOURCE_EXHAUSTED if VersionBytes() is above the limit.
  absl::Status CheckVersions();
  // Adds names to `status`, an error that says that one of `elements` is not
  // finite or exceeds the limit of `dtype`. For a pack, the error names the
  // variable instead of the pack, because users do not know packs.
  absl::Status NameTable(const absl::Status& status, size_t part,
                         const tensor::Tensor& elements, tensor::DType dtype,
                         absl::string_view remedy) const;

  const LocalModel& model_;
  const Optimizers optimizers_;
  const optim::Workers& workers_;
  const Options options_;
  // Limits the bytes of all versions of the values.
  double max_version_bytes_ = 0;
  uint64_t value_bytes_ = 0;
  const std::vector<Part> layout_;
  absl::flat_hash_map<std::string, size_t> part_of_;

  absl::Mutex setup_mu_;
  absl::flat_hash_map<size_t, Incomplete> incomplete_
      ABSL_GUARDED_BY(setup_mu_);
  // The parts, by index. Each is set once, before missing_parts_ counts it.
  std::vector<std::unique_ptr<DensePart>> parts_;
  std::atomic<size_t> missing_parts_;
  // A reader that holds readers_mu_ sees either all parts of a policy's step or
  // none of them.
  absl::Mutex readers_mu_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_DENSE_PARTS_H_
