// The value of a dense variable, in versions. A reader keeps one version while
// a writer makes the next.

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

// A tensor that changes by new versions. A new version is written to memory
// that nobody reads, and then replaces the current version. Therefore readers
// never wait for a writer, and never see a half-written version. One version
// that nobody reads is kept: a later version reuses its memory. The next
// Publish() or Trim() frees the memory of other unread versions.
//
// Thread-safe, except that only one thread at a time may write: call Next() and
// Publish().
class VersionedTensor {
 public:
  // Makes a tensor whose version 0 is `first`. The memory of `first` may belong
  // to a message, and is never written to. All later versions are in memory of
  // `allocator`, which outlives all readers. Null means
  // tensor::DefaultAllocator().
  explicit VersionedTensor(tensor::Tensor first,
                           tensor::Allocator* allocator = nullptr);

  struct Version {
    uint64_t number;
    tensor::Tensor value;  // nobody writes to its memory while it is held
  };
  // Returns the current version. Does not copy or block.
  Version Current() const;

  // Returns a tensor of the same type and shape for the next version. The
  // elements are arbitrary, and only the caller may write to them. Returns
  // RESOURCE_EXHAUSTED if memory runs out.
  absl::StatusOr<tensor::Tensor> Next();
  // Makes `next`, which Next() returned, the current version. To abandon `next`
  // instead, destroy it.
  void Publish(tensor::Tensor next);

  // Frees the memory of versions that nobody reads any more, except one.
  void Trim();

  // Returns the bytes of the current version, of versions that were still read
  // at the last Publish() or Trim(), and of memory for the next version. Does
  // not lock.
  size_t held_bytes() const { return held_bytes_; }

 private:
  // Frees the memory of unread versions, except one, which a later version
  // reuses.
  void TrimLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  tensor::Allocator* const allocator_;
  mutable absl::Mutex mu_;
  Version current_ ABSL_GUARDED_BY(mu_);
  // The first version, once a newer version is current.
  tensor::Tensor first_ ABSL_GUARDED_BY(mu_);
  // The versions between the first and the current one.
  std::vector<tensor::Tensor> earlier_ ABSL_GUARDED_BY(mu_);
  std::atomic<size_t> held_bytes_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_DENSE_VERSIONED_TENSOR_H_
