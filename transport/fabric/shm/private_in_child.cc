#include "transport/fabric/shm/private_in_child.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "absl/base/thread_annotations.h"
#include "transport/base/mutex.h"

namespace penstock {
namespace fabric {
namespace shm {

// All segments that a child would share. An intrusive list, because a fork
// handler may not allocate. Never destroyed.
class PrivateInChild::Registry {
 public:
  static Registry* Get() {
    static auto* const registry = [] {
      auto* const made = new Registry;
      pthread_atfork(&Registry::BeforeFork, &Registry::InParent,
                     &Registry::InChild);
      return made;
    }();
    return registry;
  }

  void Add(PrivateInChild* entry) {
    base::MutexLock lock(&mu_);
    entry->next_ = first_;
    if (first_ != nullptr) first_->previous_ = entry;
    first_ = entry;
  }

  // Removes an entry from the list. Ignores entries that the parent had added
  // before the fork.
  void Remove(PrivateInChild* entry) {
    base::MutexLock lock(&mu_);
    if (entry->previous_ != nullptr) {
      entry->previous_->next_ = entry->next_;
    } else if (first_ == entry) {
      first_ = entry->next_;
    }
    if (entry->next_ != nullptr) entry->next_->previous_ = entry->previous_;
  }

 private:
  static void BeforeFork() ABSL_NO_THREAD_SAFETY_ANALYSIS { Get()->mu_.Lock(); }
  static void InParent() ABSL_NO_THREAD_SAFETY_ANALYSIS { Get()->mu_.Unlock(); }
  static void InChild() ABSL_NO_THREAD_SAFETY_ANALYSIS {
    Get()->TakeAllLocked();
    Get()->mu_.Unlock();
  }

  static const bool is_made_;

  void TakeAllLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    while (first_ != nullptr) {
      PrivateInChild* const entry = first_;
      first_ = entry->next_;
      entry->next_ = entry->previous_ = nullptr;
      entry->TakeAwayFromParent();
    }
  }

  base::Mutex mu_;
  PrivateInChild* first_ ABSL_GUARDED_BY(mu_) = nullptr;
};

// Registers before main(), for the reason in base::PerProcess.
const bool PrivateInChild::Registry::is_made_ = Get() != nullptr;

PrivateInChild::PrivateInChild(const Segment& segment, bool has_reserved_pages)
    : data_(segment.data()),
      size_(segment.size()),
      fd_(segment.fd()),
      has_reserved_pages_(has_reserved_pages) {
  struct stat status;
  if (fstat(fd_, &status) == 0) {
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
  Registry::Get()->Add(this);
}

PrivateInChild::~PrivateInChild() { Registry::Get()->Remove(this); }

void PrivateInChild::TakeAwayFromParent() const {
  // Does nothing if the memory is not mapped. On some kernels, a child does not
  // inherit memory that an RDMA device uses.
  if (!IsMapped()) return;
  if (!has_reserved_pages_ && MapPrivately()) return;
  if (mprotect(data_, size_, PROT_READ) == 0) return;
  munmap(data_, size_);  // rather than let a child write there
}

// Maps at another address first, and then moves the mapping into place. A
// failed mapping in place would leave a hole.
bool PrivateInChild::MapPrivately() const {
  if (!HasDescriptor()) return false;
  void* const copy = mmap(nullptr, size_, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_NORESERVE, fd_, 0);
  if (copy == MAP_FAILED) return false;
  if (mremap(copy, size_, size_, MREMAP_MAYMOVE | MREMAP_FIXED, data_) !=
      MAP_FAILED) {
    return true;
  }
  munmap(copy, size_);
  return false;
}

bool PrivateInChild::HasDescriptor() const {
  struct stat status;
  return fstat(fd_, &status) == 0 && status.st_dev == device_ &&
         status.st_ino == inode_;
}

bool PrivateInChild::IsMapped() const {
  return msync(data_, size_, MS_ASYNC) == 0;
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
