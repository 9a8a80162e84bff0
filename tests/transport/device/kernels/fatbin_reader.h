// Parses a fatbin like cuobjdump, which some toolkits lack.

#ifndef PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_FATBIN_READER_H_
#define PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_FATBIN_READER_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::device::kernels {

// The code of a fatbin for one architecture.
struct Image {
  std::string architecture;  // "sm_80", or "compute_80" for PTX
  std::string content;       // an ELF file, or text
};

// Returns all images of a fatbin. Returns UNIMPLEMENTED if they are compressed
// and this machine has no library for that.
absl::StatusOr<std::vector<Image>> ReadFatbin(absl::string_view fatbin);

// Returns the names of the kernels in an ELF file or in PTX.
std::set<std::string> KernelsOf(const Image& image);

}  // namespace penstock::device::kernels

#endif  // PENSTOCK_TESTS_TRANSPORT_DEVICE_KERNELS_FATBIN_READER_H_
