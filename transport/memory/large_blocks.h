// Memory for large messages, used for one after another.

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

// Allocates on the heap, and keeps what was let go of for the next blocks of
// its size: glibc gives large memory back to the system at once, and fresh
// pages have to be cleared, one page fault each, which may take longer than to
// receive into them. The system may take the pages of kept blocks when it needs
// them (MADV_FREE). Thread-safe.
class LargeBlocks : public std::enable_shared_from_this<LargeBlocks> {
 public:
  // Keeps at most `limit` bytes: those that were let go of last.
  static std::shared_ptr<LargeBlocks> Create(size_t limit);
  // Of the process; never destroyed.
  static LargeBlocks* Get();
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;
  ~LargeBlocks();

  // Returns at least `size` bytes, uninitialised and aligned to a page, or null
  // where the heap has not so many. They may outlive this.
  std::shared_ptr<uint8_t> Allocate(size_t size);

  size_t kept_bytes() const;

 private:
  struct Kept {
    uint8_t* data;
    size_t size;
  };

  explicit LargeBlocks(size_t limit) : limit_(limit) {}
  // Those of the process, around a fork: its child may let go of blocks, too.
  static void BeforeFork();
  static void AfterFork();
  uint8_t* Take(size_t size);
  void GiveBack(uint8_t* data, size_t size);

  const size_t limit_;
  mutable base::Mutex mu_;
  // Few: each is large. Those that were let go of last come first.
  std::list<Kept> kept_ ABSL_GUARDED_BY(mu_);
  size_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_LARGE_BLOCKS_H_
