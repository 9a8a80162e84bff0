#include "transport/fabric/shm/mapping.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/address_space.h"
#include "transport/base/status_util.h"
#include "transport/fabric/shm/huge_pages.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

constexpr char kShared[] = "shared memory";

absl::Status CannotMap(uint64_t size, const char* what) {
  const int error = errno;
  const std::string operation =
      absl::StrCat("mmap of ", size, " bytes of ", what);
  if (error != ENOMEM) return base::ErrnoStatus(error, operation);
  return base::NoAddressSpace(operation, size);
}

// Reserves address space, aligned to huge pages. Returns null if there is not
// enough.
uint8_t* ReserveAligned(uint64_t size) {
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  size = (size + page - 1) / page * page;
  const uint64_t more = size + kHugePageBytes;
  void* const begin = mmap(nullptr, more, PROT_NONE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (begin == MAP_FAILED) return nullptr;
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uint64_t before = -address % kHugePageBytes;
  uint8_t* const aligned = static_cast<uint8_t*>(begin) + before;
  if (before > 0) munmap(begin, before);
  munmap(aligned + size, kHugePageBytes - before);
  return aligned;
}

}  // namespace

absl::StatusOr<Mapping> Mapping::Share(int fd, uint64_t size, int protection) {
  void* data = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED) return CannotMap(size, kShared);
  return Mapping(data, size);
}

absl::StatusOr<Mapping> Mapping::ShareAligned(int fd, uint64_t size,
                                              int protection) {
  uint8_t* const at = ReserveAligned(size);
  if (at == nullptr) return Share(fd, size, protection);
  Mapping reserved(at, size);
  void* data = mmap(at, size, protection, MAP_SHARED | MAP_FIXED, fd, 0);
  if (data == MAP_FAILED) return CannotMap(size, kShared);
  return reserved;
}

absl::StatusOr<Mapping> Mapping::Private(uint64_t size) {
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (data == MAP_FAILED) return CannotMap(size, "private memory");
  return Mapping(data, size);
}

absl::Status Mapping::MoveOver(const Mapping& other) {
  if (mremap(data_, size_, size_, MREMAP_MAYMOVE | MREMAP_FIXED, other.data_) ==
      MAP_FAILED) {
    return base::ErrnoStatus(errno, "mremap");
  }
  data_ = nullptr;
  return absl::OkStatus();
}

Mapping::Mapping(Mapping&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, size_);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
