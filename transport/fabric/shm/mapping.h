// Shared memory as this process sees it.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {
namespace fabric {
namespace shm {

// Owns a mapping, and unmaps it. Move-only.
class Mapping {
 public:
  // Maps the first `size` bytes of a file, which must have so many.
  // `protection` is mmap's. Returns RESOURCE_EXHAUSTED if there is no address
  // space.
  static absl::StatusOr<Mapping> Share(int fd, uint64_t size, int protection);
  // As Share(), at a multiple of kHugePageBytes if there is the address space
  // for it, so that huge pages of the file can be mapped as such.
  static absl::StatusOr<Mapping> ShareAligned(int fd, uint64_t size,
                                              int protection);

  // Maps private memory that is not allocated yet, to be written.
  static absl::StatusOr<Mapping> Private(uint64_t size);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // Has the memory take the place of `other`, which is as long: addresses in
  // `other` stay valid, and have the bytes of this. A thread that reads there
  // sees one or the other. This owns nothing then. Returns an error of mremap,
  // on which nothing has changed.
  absl::Status MoveOver(const Mapping& other);

  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  size_t size() const { return size_; }

 private:
  // Owns what mmap returned.
  Mapping(void* data, size_t size) : data_(data), size_(size) {}

  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_
