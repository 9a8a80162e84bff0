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

// The value has versions, so that reading it never waits for a step. Slots are
// changed where they are, unless a snapshot still holds them: then they are
// copied first.
//
// Thread-safe: Current(), Check(), held_bytes(), version_bytes(),
// TrimVersions() and steps(). The others: one thread at a time.
class DensePart {
 public:
  struct Options {
    std::string name;  // for messages: the variable, and its rows
    std::shared_ptr<const optim::Optimizer> optimizer;
    const optim::Workers* workers = nullptr;  // outlives the part
    // Of all versions of the value but the first; outlives all readers. Null:
    // tensor::DefaultAllocator(). Slots are on the heap: nobody sends them.
    tensor::Allocator* allocator = nullptr;
  };

  // A part at one point in time.
  struct Snapshot {
    uint64_t steps = 0;  // applied so far
    tensor::Tensor value;
    std::vector<tensor::NamedTensor> slots;
  };

  // Makes a part of its first value, without a step. Keeps `value`, which may
  // share its memory with a message. Returns INVALID_ARGUMENT, which names the
  // part, for a type that cannot be trained and an element that is not finite,
  // and RESOURCE_EXHAUSTED if there is no memory.
  static absl::StatusOr<std::unique_ptr<DensePart>> Create(
      Options options, tensor::Tensor value);
  // Makes a part that goes on where `snapshot` was taken. Returns errors as
  // Create() does, and INVALID_ARGUMENT for slots that are not its optimizer's.
  static absl::StatusOr<std::unique_ptr<DensePart>> Restore(Options options,
                                                            Snapshot snapshot);

  const std::string& name() const { return options_.name; }

  // Returns the value as the last whole step has left it.
  VersionedTensor::Version Current() const { return value_.Current(); }

  // Returns INVALID_ARGUMENT, which names the part, unless `gradient` has its
  // shape, and a type and elements that optim::CheckGradient() allows.
  absl::Status Check(const tensor::Tensor& gradient) const;

  // Returns the bytes of all versions that are in use, of memory for the next,
  // and of the slots.
  size_t held_bytes() const { return version_bytes() + slot_bytes_; }
  // Returns those of the versions, without the slots.
  size_t version_bytes() const { return value_.held_bytes(); }
  // See VersionedTensor::Trim().
  void TrimVersions() { value_.Trim(); }

  uint64_t steps() const { return steps_; }

  // Returns how it is now. Copies nothing; but the next step copies the slots,
  // if the snapshot still exists.
  Snapshot TakeSnapshot() const;

  struct Step {
    DensePart* part = nullptr;
    // At least one, in order of the workers' ranks. Each has passed Check().
    std::vector<tensor::Tensor> gradients;
  };
  // Takes a step in each part by the mean of its gradients. Either all parts
  // take their steps, or none does and RESOURCE_EXHAUSTED is returned. No part
  // may be in `steps` twice.
  //
  // All new values become current while `readers`, if it is not null, is held
  // for a moment: who holds it sees either all steps or none.
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
  // Makes each slot's memory this part's alone.
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
