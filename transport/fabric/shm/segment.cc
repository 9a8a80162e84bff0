#include "transport/fabric/shm/segment.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"

#ifndef MADV_POPULATE_READ  // Linux 5.14; missing in older C libraries
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

#ifndef MFD_HUGE_2MB  // missing in older C libraries
#define MFD_HUGE_2MB (21U << 26)
#endif

#ifndef F_SEAL_FUTURE_WRITE  // Linux 5.1; missing in older C libraries
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr int kSeals =
    F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL;
// Limits the size of a segment, in bytes, to more than any machine's shared
// memory. Sums of sizes therefore cannot overflow.
constexpr uint64_t kMaxSegmentBytes = uint64_t{1} << 40;
constexpr uint64_t kStatBlockBytes = 512;

// Checks the limit of file sizes before creating a memfd. A memfd counts as a
// file, and exceeding the limit would kill the process (SIGXFSZ).
absl::Status CheckFileSizeLimit(uint64_t size) {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
      size <= limit.rlim_cur) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "no shared memory of ", size, " bytes: the limit on file sizes is ",
      limit.rlim_cur, "; raise it (ulimit -f, RLIMIT_FSIZE)"));
}

absl::Status AllocatePages(int fd, uint64_t size) {
  int result;
  do {
    result = fallocate(fd, 0, 0, static_cast<off_t>(size));
  } while (result != 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  if (errno != ENOSPC && errno != ENOMEM) {
    return base::ErrnoStatus(errno, "fallocate of shared memory");
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("fallocate of ", size,
                   " bytes of shared memory: no memory; raise the "
                   "memory limit of the control group (the size of /dev/shm "
                   "plays no part)"));
}

absl::Status CheckSeals(int fd) {
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0) {
    return absl::FailedPreconditionError("the peer's descriptor is no memfd");
  }
  if ((seals & kSeals) != kSeals) {
    return absl::FailedPreconditionError(
        "the peer's memory is not sealed: it could vanish while it is read");
  }
  return absl::OkStatus();
}

absl::Status NotAllocated() {
  return absl::FailedPreconditionError(
      "the peer's memory is not allocated: reading it could fail");
}

uint64_t BlocksOf(int fd) {
  struct stat status;
  return fstat(fd, &status) == 0 ? static_cast<uint64_t>(status.st_blocks) : 0;
}

absl::Status CheckForHoles(int fd, uint64_t size) {
  for (uint64_t at = 0; at < size; at += kHolePartBytes) {
    absl::Status good =
        CheckForHole(fd, at, std::min(kHolePartBytes, size - at));
    if (!good.ok()) return good;
  }
  return absl::OkStatus();
}

// Rejects other page sizes, because a page of another size may end beyond the
// mapping.
absl::Status CheckPages(int fd, uint64_t size) {
  struct statfs system;
  if (fstatfs(fd, &system) != 0) return base::ErrnoStatus(errno, "fstatfs");
  if (system.f_type == TMPFS_MAGIC) return absl::OkStatus();
  if (system.f_type == HUGETLBFS_MAGIC &&
      static_cast<uint64_t>(system.f_bsize) == kHugePageBytes &&
      size % kHugePageBytes == 0) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(
      "the peer's memory is neither of ordinary pages nor of whole ones of "
      "2 MiB");
}

absl::Status CheckAllocated(int fd, uint64_t size, uint64_t part) {
  struct stat status;
  if (fstat(fd, &status) != 0) return base::ErrnoStatus(errno, "fstat");
  if (static_cast<uint64_t>(status.st_size) != size) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer's memory has ", status.st_size, " bytes, not ",
                     size, " as announced"));
  }
  absl::Status known = CheckPages(fd, size);
  if (!known.ok()) return known;
  if (BlocksOf(fd) * kStatBlockBytes < part) return NotAllocated();
  return absl::OkStatus();
}

// Checks everything but holes.
absl::Status CheckPeer(int fd, uint64_t size, uint64_t part) {
  if (size == 0 || size > kMaxSegmentBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("the peer announced ", size, " bytes of shared memory"));
  }
  absl::Status sealed = CheckSeals(fd);
  if (!sealed.ok()) return sealed;
  return CheckAllocated(fd, size, part);
}

// Returns `size`, rounded up to whole pages, if such a size is allowed.
absl::StatusOr<uint64_t> WholePages(uint64_t size, uint64_t page) {
  if (size == 0 || size > kMaxSegmentBytes) {
    return absl::ResourceExhaustedError(
        absl::StrCat("no shared memory of ", size, " bytes"));
  }
  size = (size + page - 1) / page * page;
  absl::Status allowed = CheckFileSizeLimit(size);
  if (!allowed.ok()) return allowed;
  return size;
}

uint64_t OrdinaryPage() { return static_cast<uint64_t>(sysconf(_SC_PAGESIZE)); }

absl::StatusOr<base::UniqueFd> NewMemfd(const char* name, unsigned flags) {
  base::UniqueFd fd(
      memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags));
  if (fd.valid()) return fd;
  return base::ErrnoStatus(
      errno, flags == 0 ? "memfd_create" : "memfd_create in huge pages");
}

// Writes to one byte of each possible huge page, so that the kernel may
// allocate a huge page there. fallocate() alone makes huge pages only if the
// administrator wants them for all shared memory. Ignores errors: a later
// fallocate() reports a lack of memory.
void AdviseHugePages(const Mapping& mapping) {
  if (madvise(mapping.data(), mapping.size(), MADV_HUGEPAGE) != 0) return;
  for (uint64_t at = 0; at + kHugePageBytes <= mapping.size();
       at += kHugePageBytes) {
    if (!Populate(mapping.data() + at, 1, Access::kWrite).ok()) return;
  }
}

absl::StatusOr<Mapping> MapOwn(int fd, uint64_t size, HugePages huge_pages) {
  constexpr int kProtection = PROT_READ | PROT_WRITE;
  if (huge_pages != HugePages::kTransparent) {
    return Mapping::Share(fd, size, kProtection);
  }
  absl::StatusOr<Mapping> mapping =
      Mapping::ShareAligned(fd, size, kProtection);
  if (mapping.ok()) AdviseHugePages(*mapping);
  return mapping;
}

// Explains `cause` if too few huge pages are reserved and free. Mapping huge
// pages claims them, so this error comes early.
absl::Status TooFewReserved(uint64_t size, const absl::Status& cause) {
  if (!absl::IsResourceExhausted(cause)) return cause;
  return absl::ResourceExhaustedError(absl::StrCat(
      "fewer than ", size / kHugePageBytes,
      " huge pages of 2 MiB are reserved and free; raise vm.nr_hugepages"));
}

absl::Status TryToPopulate() {
  void* const page = mmap(nullptr, 1, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return base::ErrnoStatus(errno, "mmap of a page");
  const bool can = madvise(page, 1, MADV_POPULATE_WRITE) == 0;
  munmap(page, 1);
  if (can) return absl::OkStatus();
  return absl::UnavailableError("shared memory needs Linux 5.14 or later");
}

}  // namespace

absl::Status CheckPeerMemory(int fd, uint64_t size) {
  return CheckPeer(fd, size, size);
}

absl::Status CheckForHole(int fd, uint64_t offset, uint64_t length) {
  const uint64_t blocks = BlocksOf(fd);
  int result;
  do {
    result = fallocate(fd, FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset),
                       static_cast<off_t>(length));
  } while (result != 0 && errno == EINTR);
  if (result != 0 || BlocksOf(fd) != blocks) return NotAllocated();
  return absl::OkStatus();
}

Segment::Segment(base::UniqueFd fd, Mapping mapping)
    : fd_(std::move(fd)), mapping_(std::move(mapping)) {}

absl::Status CheckKernel() {
  // Remembers success, because a kernel does not lose this ability.
  static std::atomic<bool> can{false};
  if (can.load(std::memory_order_relaxed)) return absl::OkStatus();
  absl::Status tried = TryToPopulate();
  if (tried.ok()) can.store(true, std::memory_order_relaxed);
  return tried;
}

absl::Status Populate(const uint8_t* data, uint64_t size, Access access) {
  const auto mask = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)) - 1;
  const uintptr_t begin = reinterpret_cast<uintptr_t>(data) & ~mask;
  const uintptr_t end = reinterpret_cast<uintptr_t>(data) + size;
  const int advice =
      access == Access::kRead ? MADV_POPULATE_READ : MADV_POPULATE_WRITE;
  int result;
  do {
    result = madvise(reinterpret_cast<void*>(begin), end - begin, advice);
  } while (result != 0 && errno == EINTR);
  if (result == 0) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(
      "no memory for ", size, " bytes of a ring: raise the memory limit"));
}

absl::StatusOr<Segment> Segment::Create(const char* name, uint64_t size,
                                        HugePages huge_pages) {
  const bool is_reserved = huge_pages == HugePages::kReserved;
  absl::StatusOr<uint64_t> whole =
      WholePages(size, is_reserved ? kHugePageBytes : OrdinaryPage());
  if (!whole.ok()) return whole.status();
  absl::StatusOr<base::UniqueFd> fd =
      NewMemfd(name, is_reserved ? MFD_HUGETLB | MFD_HUGE_2MB : 0);
  if (!fd.ok()) return fd.status();
  absl::StatusOr<Segment> segment =
      Make(*std::move(fd), *whole, *whole, huge_pages);
  if (is_reserved && !segment.ok()) {
    return TooFewReserved(*whole, segment.status());
  }
  return segment;
}

absl::StatusOr<Segment> Segment::CreatePart(const char* name, uint64_t size,
                                            uint64_t part) {
  absl::StatusOr<uint64_t> whole = WholePages(size, OrdinaryPage());
  if (!whole.ok()) return whole.status();
  absl::StatusOr<base::UniqueFd> fd = NewMemfd(name, 0);
  if (!fd.ok()) return fd.status();
  return Make(*std::move(fd), *whole, std::min(part, *whole), HugePages::kOff);
}

absl::StatusOr<Segment> Segment::Make(base::UniqueFd fd, uint64_t size,
                                      uint64_t part, HugePages huge_pages) {
  if (ftruncate(fd.get(), static_cast<off_t>(size)) != 0) {
    return base::ErrnoStatus(errno, "ftruncate of a memfd");
  }
  // Maps before setting the seal, which forbids further writable mappings.
  absl::StatusOr<Mapping> mapping = MapOwn(fd.get(), size, huge_pages);
  if (!mapping.ok()) return mapping.status();
  absl::Status allocated = AllocatePages(fd.get(), part);
  if (!allocated.ok()) return allocated;
  if (fcntl(fd.get(), F_ADD_SEALS, kSeals) != 0) {
    return base::ErrnoStatus(errno, "F_ADD_SEALS (needs Linux 5.1)");
  }
  return Segment(std::move(fd), *std::move(mapping));
}

absl::StatusOr<PeerSegment> PeerSegment::Map(progress::ForeignFd fd,
                                             uint64_t size) {
  absl::Status good = CheckPeer(fd.get(), size, size);
  if (good.ok()) good = CheckForHoles(fd.get(), size);
  if (!good.ok()) return good;
  // Gives no advice about page sizes, because the owner decides if the pages
  // are huge.
  absl::StatusOr<Mapping> mapping =
      Mapping::ShareAligned(fd.get(), size, PROT_READ);
  if (!mapping.ok()) return mapping.status();
  fd.ResetHere();  // the mapping keeps its pages
  return PeerSegment(*std::move(mapping));
}

absl::StatusOr<PeerSegment> PeerSegment::MapPart(progress::ForeignFd fd,
                                                 uint64_t size, uint64_t part) {
  absl::Status good = CheckPeer(fd.get(), size, part);
  if (good.ok()) good = CheckForHoles(fd.get(), part);
  if (!good.ok()) return good;
  absl::StatusOr<Mapping> mapping = Mapping::Share(fd.get(), size, PROT_READ);
  if (!mapping.ok()) return mapping.status();
  fd.ResetHere();
  return PeerSegment(*std::move(mapping));
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
