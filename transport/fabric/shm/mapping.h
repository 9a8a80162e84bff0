// Mappings of shared memory in this process.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/statusor.h"

namespace penstock {
namespace fabric {
namespace shm {

// Owns a mapping, and unmaps it when destroyed. Move-only.
class Mapping {
 public:
  // Maps the first `size` bytes of a file. The file must have at least `size`
  // bytes. `protection` is mmap's. Returns RESOURCE_EXHAUSTED if address space
  // runs out.
  static absl::StatusOr<Mapping> Share(int fd, uint64_t size, int protection);
  // Maps as Share() does, at a multiple of kHugePageBytes if there is enough
  // address space, so that huge pages of the file can be mapped as such.
  static absl::StatusOr<Mapping> ShareAligned(int fd, uint64_t size,
                                              int protection);

  // Maps private memory for writing. Pages are allocated at their first use.
  static absl::StatusOr<Mapping> Private(uint64_t size);

  Mapping() = default;
  Mapping(Mapping&& other) noexcept;
  Mapping& operator=(Mapping&& other) noexcept;
  ~Mapping();

  // Moves this mapping to the addresses of `other`, which must have the same
  // size. The addresses of `other` stay valid, and then show the bytes of this
  // mapping. A thread that reads there meanwhile sees the old or the new bytes.
  // Afterwards this object owns nothing. If mremap fails, nothing has changed.
  absl::Status MoveOver(const Mapping& other);

  uint8_t* data() const { return static_cast<uint8_t*>(data_); }
  size_t size() const { return size_; }

 private:
  // Owns the result of mmap.
  Mapping(void* data, size_t size) : data_(data), size_(size) {}

  void* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_MAPPING_H_
