#include "transport/fabric/shm/lent_segment.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "transport/base/mutex.h"
#include "transport/base/per_process.h"
#include "transport/base/status_util.h"
#include "transport/fabric/shm/segment.h"
#include "transport/progress/aside.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// Identifies a file by its device and inode. Unique while any process has the
// file mapped.
using Identity = std::pair<uint64_t, uint64_t>;

// The mapped segments of this process. A forked child makes a new registry. The
// parent's mappings exist in the child, but the child never looks them up.
struct Registry {
  base::Mutex mu;
  std::map<Identity, std::weak_ptr<LentSegment>> segments ABSL_GUARDED_BY(mu);
};

// Returns true if copying would free at least a quarter of the segment.
bool IsMuchLess(uint64_t bytes, uint64_t segment_bytes) {
  return bytes <= segment_bytes / 4 * 3;
}

uint64_t PageBytes() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

uint64_t PageBefore(uint64_t offset) { return offset & ~(PageBytes() - 1); }

uint64_t PageAfter(uint64_t offset) {
  return PageBefore(offset + PageBytes() - 1);
}

void DropDeadLocked(Registry* registry)
    ABSL_EXCLUSIVE_LOCKS_REQUIRED(registry->mu) {
  for (auto it = registry->segments.begin(); it != registry->segments.end();) {
    it = it->second.expired() ? registry->segments.erase(it) : std::next(it);
  }
}

}  // namespace

absl::StatusOr<std::shared_ptr<LentSegment>> LentSegment::Get(
    progress::ForeignFd fd, uint64_t size) {
  absl::Status good = CheckPeerMemory(fd.get(), size);
  if (!good.ok()) return good;
  struct stat status;
  if (fstat(fd.get(), &status) != 0) return base::ErrnoStatus(errno, "fstat");
  const Identity identity{status.st_dev, status.st_ino};
  Registry* const registry = base::PerProcess<Registry>::Get();
  base::MutexLock lock(&registry->mu);
  auto it = registry->segments.find(identity);
  std::shared_ptr<LentSegment> known =
      it == registry->segments.end() ? nullptr : it->second.lock();
  if (known != nullptr && known->AddUser()) return known;
  // Gives no advice about page sizes, because the owner decides if the pages
  // are huge.
  absl::StatusOr<Mapping> mapping =
      Mapping::ShareAligned(fd.get(), size, PROT_READ);
  if (!mapping.ok()) return mapping.status();
  std::shared_ptr<LentSegment> made = Make(std::move(fd), *std::move(mapping));
  DropDeadLocked(registry);
  registry->segments[identity] = made;
  return made;
}

std::shared_ptr<LentSegment> LentSegment::Make(progress::ForeignFd fd,
                                               Mapping mapping) {
  // Makes a segment that unmaps on another thread: if the owner has released
  // the memory, unmapping frees its pages.
  std::shared_ptr<LentSegment> segment(
      new LentSegment(std::move(fd), std::move(mapping)),
      [fork_count = progress::ForkCount()](LentSegment* ended) {
        if (fork_count != progress::ForkCount()) {
          delete ended;
        } else {
          progress::RunAside(progress::Aside::kMemory,
                             [ended] { delete ended; });
        }
      });
  CheckRestAside(segment);
  return segment;
}

LentSegment::LentSegment(progress::ForeignFd fd, Mapping mapping)
    : mapping_(std::move(mapping)),
      fork_count_(progress::ForkCount()),
      fd_(std::move(fd)),
      checked_((mapping_.size() + kHolePartBytes - 1) / kHolePartBytes),
      unchecked_(checked_.size()) {}

absl::Status LentSegment::Check(uint64_t offset, uint64_t length) {
  if (is_good_.load(std::memory_order_acquire) || length == 0) {
    return absl::OkStatus();
  }
  const size_t last = (offset + length - 1) / kHolePartBytes;
  base::MutexLock lock(&mu_);
  for (size_t part = offset / kHolePartBytes; part <= last; ++part) {
    absl::Status good = CheckPartLocked(part);
    if (!good.ok()) return good;
  }
  return absl::OkStatus();
}

absl::Status LentSegment::CheckPartLocked(size_t part) {
  if (!bad_.ok()) return bad_;
  if (checked_[part]) return absl::OkStatus();
  const uint64_t begin = part * kHolePartBytes;
  bad_ =
      CheckForHole(fd_.get(), begin, std::min(kHolePartBytes, size() - begin));
  checked_[part] = true;
  --unchecked_;
  if (!bad_.ok() || unchecked_ > 0) return bad_;
  fd_.ResetHere();  // the mapping keeps the pages
  is_good_.store(true, std::memory_order_release);
  return bad_;
}

bool LentSegment::CheckNext() {
  base::MutexLock lock(&mu_);
  const auto next = std::find(checked_.begin(), checked_.end(), false);
  if (next == checked_.end()) return false;
  return CheckPartLocked(next - checked_.begin()).ok();
}

void LentSegment::CheckRestAside(const std::weak_ptr<LentSegment>& weak) {
  progress::RunAside(progress::Aside::kMemory, [weak] {
    for (;;) {
      std::shared_ptr<LentSegment> segment = weak.lock();
      if (segment == nullptr || !segment->CheckNext()) return;
    }
  });
}

bool LentSegment::AddUser() {
  base::MutexLock lock(&loans_mu_);
  if (users_ == 0) return false;
  ++users_;
  return true;
}

void LentSegment::RemoveUser() {
  base::MutexLock lock(&loans_mu_);
  if (--users_ == 0) MayCopyLocked();
}

void LentSegment::Begin(Loan* loan) {
  base::MutexLock lock(&loans_mu_);
  loan->next_ = loans_;
  if (loans_ != nullptr) loans_->previous_ = loan;
  loans_ = loan;
  loaned_bytes_ += loan->length_;
}

void LentSegment::End(Loan* loan) {
  if (fork_count_ != progress::ForkCount()) return;  // the parent's list
  base::MutexLock lock(&loans_mu_);
  (loan->previous_ == nullptr ? loans_ : loan->previous_->next_) = loan->next_;
  if (loan->next_ != nullptr) loan->next_->previous_ = loan->previous_;
  loaned_bytes_ -= loan->length_;
  if (place_ == Place::kPrivate) {
    FreeUnloanedLocked(PageBefore(loan->offset_),
                       PageAfter(loan->offset_ + loan->length_));
  } else if (users_ == 0) {
    MayCopyLocked();
  }
}

void LentSegment::MayCopyLocked() {
  if (place_ != Place::kSegment || loans_ == nullptr ||
      !IsMuchLess(loaned_bytes_, size())) {
    return;
  }
  place_ = Place::kCopying;
  const std::weak_ptr<LentSegment> weak = shared_from_this();
  progress::RunAside(progress::Aside::kMemory, [weak] {
    if (std::shared_ptr<LentSegment> segment = weak.lock()) segment->Copy();
  });
}

std::vector<std::pair<uint64_t, uint64_t>> LentSegment::LoanedLocked() const {
  std::vector<std::pair<uint64_t, uint64_t>> all;
  for (const Loan* loan = loans_; loan != nullptr; loan = loan->next_) {
    all.emplace_back(PageBefore(loan->offset_),
                     PageAfter(loan->offset_ + loan->length_));
  }
  std::sort(all.begin(), all.end());
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  for (const auto& range : all) {
    if (!ranges.empty() && range.first <= ranges.back().second) {
      ranges.back().second = std::max(ranges.back().second, range.second);
    } else {
      ranges.push_back(range);
    }
  }
  return ranges;
}

void LentSegment::FreeUnloanedLocked(uint64_t begin, uint64_t end) {
  const auto free = [this](uint64_t from, uint64_t to) {
    // Ignores the result: this fails only if the range is not mapped.
    if (from < to) madvise(mapping_.data() + from, to - from, MADV_DONTNEED);
  };
  for (const auto& range : LoanedLocked()) {
    if (range.second <= begin) continue;
    if (range.first >= end) break;
    free(begin, std::min(range.first, end));
    begin = std::min(range.second, end);
  }
  free(begin, end);
}

void LentSegment::Copy() {
  std::vector<std::pair<uint64_t, uint64_t>> ranges;
  {
    base::MutexLock lock(&loans_mu_);
    ranges = LoanedLocked();
  }
  // Returns after an error. The segment stays mapped, which only costs memory.
  absl::StatusOr<Mapping> copy = Mapping::Private(size());
  if (!copy.ok()) return;
  // Forbids huge pages. Otherwise reading one small page would allocate a huge
  // page.
  madvise(copy->data(), size(), MADV_NOHUGEPAGE);
  for (const auto& range : ranges) {
    memcpy(copy->data() + range.first, data() + range.first,
           std::min(range.second, size()) - range.first);
  }
  if (mprotect(copy->data(), size(), PROT_READ) != 0) return;
  {
    base::MutexLock lock(&loans_mu_);
    if (!copy->MoveOver(mapping_).ok()) return;
    place_ = Place::kPrivate;
    FreeUnloanedLocked(0, PageAfter(size()));
  }
  // Closes the descriptor, which would keep the peer's memory allocated.
  base::MutexLock lock(&mu_);
  fd_.Reset();
  checked_.assign(checked_.size(), true);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
