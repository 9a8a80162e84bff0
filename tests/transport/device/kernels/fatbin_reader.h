// Takes a fatbin apart, as cuobjdump does, which not each toolkit has.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_FATBIN_READER_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_FATBIN_READER_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::device::kernels {

// What a fatbin has for one architecture.
struct Image {
  std::string architecture;  // "sm_80"; of PTX "compute_80"
  std::string content;       // an ELF file, or text
};

// Returns all of a fatbin's images. UNIMPLEMENTED: they are compressed by what
// this machine has no library for.
absl::StatusOr<std::vector<Image>> ReadFatbin(absl::string_view fatbin);

// Returns the names of the kernels in an ELF file or in PTX.
std::set<std::string> KernelsOf(const Image& image);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_FATBIN_READER_H_
