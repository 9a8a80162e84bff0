// Names one tensor on its way from one place to another in one step.

#ifndef PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_KEY_H_
#define PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_KEY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"

namespace penstock::tensor {

// The name of a tensor in a Rendezvous. Two keys are equal if all four parts
// are. Source and destination are names that the program chooses, such as those
// of its devices; they may be empty.
struct RendezvousKey {
  // Caps the total bytes of the three names. A status that quotes a key thus
  // stays below gRPC's limit of 8 KiB for metadata, even if each byte is
  // encoded as three bytes.
  static constexpr size_t kMaxNameBytes = 1024;

  uint64_t step = 0;
  std::string name;
  std::string source;
  std::string destination;

  // Returns INVALID_ARGUMENT for an empty name, names that are not UTF-8, and
  // names above kMaxNameBytes.
  absl::Status Check() const;

  // Returns the bytes of the three names.
  size_t name_bytes() const;

  // Returns a readable form: "step 7 tensor w from a to b".
  std::string ToString() const;
};

// Orders keys by step first.
bool operator<(const RendezvousKey& a, const RendezvousKey& b);
bool operator==(const RendezvousKey& a, const RendezvousKey& b);

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_KEY_H_
