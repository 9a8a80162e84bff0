#include "transport/fabric/shm/mapping.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace fabric {
namespace shm {

absl::StatusOr<Mapping> Mapping::Share(int fd, uint64_t size, int protection) {
  void* data = mmap(nullptr, size, protection, MAP_SHARED, fd, 0);
  if (data == MAP_FAILED && errno == ENOMEM) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "mmap of ", size,
        " bytes of shared memory: no address space or too "
        "many mappings; raise ulimit -v (RLIMIT_AS) or vm.max_map_count"));
  }
  if (data == MAP_FAILED) return base::ErrnoStatus(errno, "mmap of a memfd");
  return Mapping(data, size);
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
