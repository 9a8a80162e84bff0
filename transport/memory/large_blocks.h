// Allocates the memory of large messages, and reuses it for later messages.

#ifndef PENSTOCK_TRANSPORT_MEMORY_LARGE_BLOCKS_H_
#define PENSTOCK_TRANSPORT_MEMORY_LARGE_BLOCKS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace memory {

// Allocates blocks on the heap, and keeps released blocks for reuse by blocks
// of the same size. Without reuse, glibc returns a large block to the system,
// which clears each page of a new block at the first access. Clearing a page
// may take longer than receiving data into it. Kept pages are marked with
// MADV_FREE: the system may take them when memory is short. Thread-safe.
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

  // Frees the blocks that were already kept at the previous call of FreeIdle(),
  // and gives their pages back to the system. Starts the timer again if blocks
  // are left.
  void FreeIdle();
  // Sets the function that arranges one later call of FreeIdle(). `start` is
  // called, without locks, when the first block is kept. If `start` fails, it
  // returns false and is called again for the next block. Call SetTimer() at
  // most once.
  void SetTimer(std::function<bool()> start);

  size_t kept_bytes() const;

 private:
  struct Kept {
    uint8_t* data;
    size_t size;
    uint64_t since;  // the number of calls of FreeIdle() before
  };

  explicit LargeBlocks(size_t limit) : limit_(limit) {}
  // Acquire and release the lock of Get() around a fork, because the child may
  // release blocks, too.
  static void BeforeFork();
  static void AfterFork();
  static void AfterForkInChild();
  uint8_t* Take(size_t size);
  void GiveBack(uint8_t* data, size_t size);
  // Starts the timer if blocks are kept and it is not running.
  void StartTimer();

  const size_t limit_;
  mutable base::Mutex mu_;
  // The kept blocks, the most recently released first. A list, because there
  // are few large blocks.
  std::list<Kept> kept_ ABSL_GUARDED_BY(mu_);
  size_t kept_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  uint64_t looks_ ABSL_GUARDED_BY(mu_) = 0;  // calls of FreeIdle()
  std::function<bool()> start_timer_ ABSL_GUARDED_BY(mu_);
  bool has_timer_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace memory
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_MEMORY_LARGE_BLOCKS_H_
