// Allocates the memory of large messages, and reuses it for later messages.

#ifndef PENSTOCK_TRANSPORT_MEMORY_LARGE_BLOCKS_H_
#define PENSTOCK_TRANSPORT_MEMORY_LARGE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace memory {

// Allocates blocks on the heap, and keeps released blocks for later blocks of
// the same size. glibc would return a large block to the system immediately.
// The system clears each page of a new block at the first access, which may
// take longer than receiving into it. Kept pages are marked with MADV_FREE: the
// system may take them when memory is short. Thread-safe.
class LargeBlocks : public std::enable_shared_from_this<LargeBlocks> {
 public:
  // Keeps at most `limit` bytes, in the most recently released blocks.
  static std::shared_ptr<LargeBlocks> Create(size_t limit);
  // Returns the instance of the process, which is never destroyed.
  static LargeBlocks* Get();
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;
  ~LargeBlocks();

  // Returns at least `size` bytes, uninitialised and aligned to a page. Returns
  // null if the heap has too little memory. A block may outlive this object.
  std::shared_ptr<uint8_t> Allocate(size_t size);

  size_t kept_bytes() const;

 private:
  struct Kept {
    uint8_t* data;
    size_t size;
  };

  explicit LargeBlocks(size_t limit) : limit_(limit) {}
  // Hold the lock of Get() around a fork, because the child may release blocks,
  // too.
  static void BeforeFork();
  static void AfterFork();
  uint8_t* Take(size_t size);
  void GiveBack(uint8_t* data, size_t size);

  const size_t limit_;
  mutable base::Mutex mu_;
  // The most recently released first. A list, because there are few large
  // blocks.
  std::list<Kept> kept_ ABSL_GUARDED_BY(mu_);
  size_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_LARGE_BLOCKS_H_
