// A range of the rows of a dense variable: its value, its optimizer's slots,
// and its steps.

#ifndef PENSTOCK_PS_DENSE_DENSE_PART_H_
#define PENSTOCK_PS_DENSE_DENSE_PART_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/types/span.h"
#include "ps/dense/versioned_tensor.h"
#include "ps/optim/dense.h"
#include "ps/optim/optimizer.h"
#include "ps/optim/workers.h"
#include "tensor_service/allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A range of a dense variable, with the optimizer's slots. The value has
// versions, so readers never wait for a step. Slots are changed in place,
// unless a snapshot still holds them. Then they are copied first.
//
// Current(), Check(), held_bytes(), version_bytes(), TrimVersions() and steps()
// are thread-safe. Call the other methods from one thread at a time.
class DensePart {
 public:
  struct Options {
    std::string name;  // for messages: the variable, and its rows
    std::shared_ptr<const optim::Optimizer> optimizer;
    const optim::Workers* workers = nullptr;  // outlives the part
    // Allocates all versions of the value except the first. Outlives all
    // readers. Null means tensor::DefaultAllocator(). Slots are on the heap,
    // because they are never sent.
    tensor::Allocator* allocator = nullptr;
  };

  // The state of a part at one point in time.
  struct Snapshot {
    uint64_t steps = 0;  // applied so far
    tensor::Tensor value;
    std::vector<tensor::NamedTensor> slots;
  };

  // Makes a part from its first value, at step 0. Keeps `value`, which may
  // share its memory with a message. Returns INVALID_ARGUMENT, which names the
  // part, for a type that cannot be trained and for an element that is not
  // finite. Returns RESOURCE_EXHAUSTED if memory runs out.
  static absl::StatusOr<std::unique_ptr<DensePart>> Create(
      Options options, tensor::Tensor value);
  // Makes a part that continues from `snapshot`. Returns errors as Create()
  // does, and INVALID_ARGUMENT if the slots do not belong to the part's
  // optimizer.
  static absl::StatusOr<std::unique_ptr<DensePart>> Restore(Options options,
                                                            Snapshot snapshot);

  const std::string& name() const { return options_.name; }

  // Returns the value after the last complete step.
  VersionedTensor::Version Current() const { return value_.Current(); }

  // Returns INVALID_ARGUMENT, which names the part, unless `gradient` has the
  // part's shape, and a type and elements that optim::CheckGradient() allows.
  absl::Status Check(const tensor::Tensor& gradient) const;

  // Returns the bytes of all versions in use, of memory for the next version,
  // and of the slots.
  size_t held_bytes() const { return version_bytes() + slot_bytes_; }
  // Returns the bytes of the versions, without the slots.
  size_t version_bytes() const { return value_.held_bytes(); }
  // Frees old versions without readers; see VersionedTensor::Trim().
  void TrimVersions() { value_.Trim(); }

  uint64_t steps() const { return steps_; }

  // Returns the present state, without a copy. The next step copies the slots
  // if the snapshot still exists.
  Snapshot TakeSnapshot() const;

  struct Step {
    DensePart* part = nullptr;
    // The gradients, at least one, in the order of the workers' ranks. Each has
    // passed Check().
    std::vector<tensor::Tensor> gradients;
  };
  // Applies one step to each part, by the mean of its gradients. Either all
  // parts take their steps, or none does and RESOURCE_EXHAUSTED is returned.
  // `steps` contains no part twice.
  //
  // If `readers` is not null, holds it while the new values become current. A
  // reader that holds `readers` therefore sees either all steps or none.
  static absl::Status Apply(absl::Span<const Step> steps,
                            const optim::Workers& workers,
                            absl::Mutex* readers = nullptr)
      ABSL_LOCKS_EXCLUDED(readers);

 private:
  class Prepared;

  DensePart(Options options, Snapshot first);
  static absl::StatusOr<std::unique_ptr<DensePart>> Make(Options options,
                                                         Snapshot first);
  absl::Status CheckFirst() const;
  absl::Status AddSlots();
  absl::Status CheckSlots();
  // Copies each slot whose memory a snapshot shares. This part then owns all
  // slots alone.
  absl::Status OwnSlots();
  absl::Status Refuse(const absl::Status& status) const;

  const Options options_;
  VersionedTensor value_;
  std::vector<tensor::NamedTensor> slots_;  // as DenseSlotsOf() has them
  size_t slot_bytes_ = 0;
  std::atomic<uint64_t> steps_{0};
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_DENSE_DENSE_PART_H_
