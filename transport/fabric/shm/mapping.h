// Shared memory as this process sees it.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {
namespace fabric {
namespace shm {

// The one owner of a mapping.
class Mapping {
 public:
  // The first `size` bytes of a file, which must have them. `protection` is
  // mmap's. RESOURCE_EXHAUSTED where there is no address space.
  static absl::StatusOr<Mapping> Share(int fd, uint64_t size, int protection);
  // The same at a multiple of kHugePageBytes, so that huge pages of the file
  // can be mapped as such, if there is so much address space.
  static absl::StatusOr<Mapping> ShareAligned(int fd, uint64_t size,
                                              int protection);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  size_t size() const { return size_; }

 private:
  // Takes over what mmap returned.
  Mapping(void* data, size_t size) : data_(data), size_(size) {}

  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_
