// The bytes by which one process tells another which device memory it means.

#ifndef PENSTOCK_TRANSPORT_DEVICE_ALLOCATION_NAME_H_
#define PENSTOCK_TRANSPORT_DEVICE_ALLOCATION_NAME_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "transport/device/abi.h"

namespace penstock {
namespace device {

// An allocation, as the process that has made it knows it.
struct AllocationName {
  abi::Uuid device = {};
  uint64_t size = 0;  // in bytes; 1 to AllocationNames::kMaxSize
  // In that process. The end of the allocation does not wrap round.
  abi::Address address = 0;
  uint64_t id = 0;  // the driver's; no other one there has ever had it
  abi::IpcMemHandle ipc = {};
};

// Writes names, and reads them. Integers are little-endian:
//
//   offset  bytes
//        0      1  version, 1
//        1     16  device
//       17      8  size
//       25      8  address
//       33      8  id
//       41     64  ipc
//      105     16  mark: the beginning of HMAC-SHA256(key, all before it)
//
// The key is a secret of one object in one process. So a name that carries its
// mark was written by it, and whoever has made up a name cannot have this
// process take its own memory for a peer's. Thread-safe.
class AllocationNames {
 public:
  static constexpr size_t kBytes = 121;
  // The most bytes of an allocation, 1 TiB: more than any device has.
  static constexpr uint64_t kMaxSize = uint64_t{1} << 40;

  // Returns an error of getrandom().
  static absl::StatusOr<AllocationNames> Create();

  std::string Encode(const AllocationName& name) const;

  struct Decoded {
    AllocationName name;
    bool is_own = false;  // was written by this object
  };
  // Takes any bytes. Returns INVALID_ARGUMENT if they are no name, one of
  // another version, or the name of no possible allocation.
  absl::StatusOr<Decoded> Decode(absl::string_view bytes) const;

 private:
  explicit AllocationNames(std::string key) : key_(std::move(key)) {}

  std::string MarkOf(absl::string_view bytes) const;

  std::string key_;
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_ALLOCATION_NAME_H_
