#include "transport/memory/large_blocks.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <iterator>
#include <utility>

#include "absl/memory/memory.h"
#if __has_include(<sanitizer/asan_interface.h>)
#include <sanitizer/asan_interface.h>
#else  // clang without compiler-rt, which has no sanitizers
#define ASAN_POISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(data, size) ((void)(data), (void)(size))
#endif

namespace penstock {
namespace memory {
namespace {

constexpr size_t kHugePage = 2 * 1024 * 1024;
// The size in bytes from which most of a block is in whole huge pages.
constexpr size_t kLeastHugeBytes = 2 * kHugePage;
// Limits the kept bytes to what one step of a large model moves, if the system
// has enough memory.
constexpr size_t kProcessLimit = 256 * 1024 * 1024;

size_t PageSize() {
  static const auto size = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

// Rounds up to a multiple of an eighth of the next lower power of two, and of a
// page. Messages of similar sizes then share blocks. Returns 0 on overflow.
size_t RoundUp(size_t size) {
  size_t step = PageSize();
  while (step <= SIZE_MAX / 16 && step * 16 <= size) step *= 2;
  if (size > SIZE_MAX - step) return 0;
  return (size + step - 1) / step * step;
}

uint8_t* NewMemory(size_t size) {
  const bool huge = size >= kLeastHugeBytes;
  void* memory = nullptr;
  if (size == 0 ||
      posix_memalign(&memory, huge ? kHugePage : PageSize(), size) != 0) {
    return nullptr;
  }
  // madvise() only gives advice: a system without huge pages uses small pages.
  if (huge) (void)madvise(memory, size, MADV_HUGEPAGE);
  return static_cast<uint8_t*>(memory);
}

// Frees a kept block. Kept blocks are poisoned for AddressSanitizer.
void Free(uint8_t* data, size_t size) {
  ASAN_UNPOISON_MEMORY_REGION(data, size);
  free(data);
}

}  // namespace

std::shared_ptr<LargeBlocks> LargeBlocks::Create(size_t limit) {
  return absl::WrapUnique(new LargeBlocks(limit));
}

LargeBlocks* LargeBlocks::Get() {
  static auto* const process =
      new std::shared_ptr<LargeBlocks>(Create(kProcessLimit));
  static const int registered =
      pthread_atfork(&BeforeFork, &AfterFork, &AfterForkInChild);
  (void)registered;
  return process->get();
}

// Registers before main(), for the reason in base::PerProcess.
const bool is_made = LargeBlocks::Get() != nullptr;

LargeBlocks::~LargeBlocks() {
  for (const Kept& kept : kept_) Free(kept.data, kept.size);
}

void LargeBlocks::BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Get()->mu_.Lock();
}

void LargeBlocks::AfterFork() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Get()->mu_.Unlock();
}

// Forgets the parent's timer, which does not run in the child.
void LargeBlocks::AfterForkInChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
  Get()->has_timer_ = false;
  Get()->mu_.Unlock();
}

std::shared_ptr<uint8_t> LargeBlocks::Allocate(size_t size) {
  const size_t rounded = RoundUp(size);
  uint8_t* data = Take(rounded);
  if (data == nullptr) data = NewMemory(rounded);
  if (data == nullptr) return nullptr;
  return std::shared_ptr<uint8_t>(
      data, [self = std::weak_ptr<LargeBlocks>(shared_from_this()),
             rounded](uint8_t* memory) {
        const std::shared_ptr<LargeBlocks> blocks = self.lock();
        if (blocks == nullptr) return free(memory);
        blocks->GiveBack(memory, rounded);
      });
}

uint8_t* LargeBlocks::Take(size_t size) {
  base::MutexLock lock(&mu_);
  for (auto kept = kept_.begin(); kept != kept_.end(); ++kept) {
    if (kept->size != size) continue;
    uint8_t* const data = kept->data;
    kept_.erase(kept);
    kept_bytes_ -= size;
    ASAN_UNPOISON_MEMORY_REGION(data, size);
    return data;
  }
  return nullptr;
}

void LargeBlocks::GiveBack(uint8_t* data, size_t size) {
  if (size > limit_) return free(data);
  // Lets the system take the pages. The block consists of whole pages, which
  // nobody else uses. A system without MADV_FREE keeps the pages.
  (void)madvise(data, size, MADV_FREE);
  ASAN_POISON_MEMORY_REGION(data, size);
  std::list<Kept> dropped;  // freed outside the lock
  {
    base::MutexLock lock(&mu_);
    kept_.push_front(Kept{data, size, looks_});
    kept_bytes_ += size;
    while (kept_bytes_ > limit_) {
      kept_bytes_ -= kept_.back().size;
      dropped.splice(dropped.end(), kept_, std::prev(kept_.end()));
    }
  }
  for (const Kept& old : dropped) Free(old.data, old.size);
  StartTimer();
}

void LargeBlocks::FreeIdle() {
  std::list<Kept> idle;  // freed outside the lock
  {
    base::MutexLock lock(&mu_);
    auto first = kept_.end();
    while (first != kept_.begin() && std::prev(first)->since < looks_) {
      --first;
      kept_bytes_ -= first->size;
    }
    idle.splice(idle.end(), kept_, first, kept_.end());
    ++looks_;
    has_timer_ = false;
  }
  for (const Kept& old : idle) {
    // Returns the pages to the system. free() might keep them for other blocks
    // of the heap.
    (void)madvise(old.data, old.size, MADV_DONTNEED);
    Free(old.data, old.size);
  }
  StartTimer();
}

void LargeBlocks::SetTimer(std::function<bool()> start) {
  {
    base::MutexLock lock(&mu_);
    start_timer_ = std::move(start);
  }
  StartTimer();
}

void LargeBlocks::StartTimer() {
  std::function<bool()> start;
  {
    base::MutexLock lock(&mu_);
    if (has_timer_ || kept_.empty() || start_timer_ == nullptr) return;
    has_timer_ = true;
    start = start_timer_;
  }
  if (start()) return;
  base::MutexLock lock(&mu_);
  has_timer_ = false;
}

size_t LargeBlocks::kept_bytes() const {
  base::MutexLock lock(&mu_);
  return kept_bytes_;
}

}  // namespace memory
}  // namespace penstock
