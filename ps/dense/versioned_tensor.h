// The value of a dense variable, in versions: readers keep theirs while the
// next one is made.

#ifndef PENSTOCK_PS_DENSE_VERSIONED_TENSOR_H_
#define PENSTOCK_PS_DENSE_VERSIONED_TENSOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "tensor_service/allocator.h"
#include "tensor_service/tensor.h"

namespace penstock::ps {

// A new version is written to memory that nobody reads, and then takes the
// place of the current one. So no reader waits for a writer, and none sees a
// version that is half written. The memory of one version that nobody holds any
// more is used for a later one; that of others is freed by the next Publish()
// or Trim().
//
// Thread-safe, but for one writer at a time: Next() and Publish().
class VersionedTensor {
 public:
  // Takes version 0, whose memory may be a message's, and is never written to.
  // All other versions lie in memory of `allocator`, which outlives all
  // readers; null is tensor::DefaultAllocator().
  explicit VersionedTensor(tensor::Tensor first,
                           tensor::Allocator* allocator = nullptr);

  struct Version {
    uint64_t number;
    tensor::Tensor value;  // nobody writes to its memory while it is held
  };
  // Returns the current version, without a copy and at once.
  Version Current() const;

  // Returns a tensor of the same type and shape for the next version, with
  // arbitrary elements, which its holder alone may write to. Returns
  // RESOURCE_EXHAUSTED if there is no memory.
  absl::StatusOr<tensor::Tensor> Next();
  // Makes `next`, which Next() returned, the current version. Drop a tensor of
  // Next() to forgo the version.
  void Publish(tensor::Tensor next);

  // Frees the memory of versions that nobody reads any more, but for one.
  void Trim();

  // Returns the bytes of the current version, of those that were still read at
  // the last Publish() or Trim(), and of memory for the next. Does not lock.
  size_t held_bytes() const { return held_bytes_; }

 private:
  // Keeps memory of one version that a later one can use.
  void TrimLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  tensor::Allocator* const allocator_;
  mutable absl::Mutex mu_;
  Version current_ ABSL_GUARDED_BY(mu_);
  tensor::Tensor first_ ABSL_GUARDED_BY(mu_);  // once it is not current
  std::vector<tensor::Tensor> earlier_ ABSL_GUARDED_BY(mu_);  // all others
  std::atomic<size_t> held_bytes_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_DENSE_VERSIONED_TENSOR_H_
