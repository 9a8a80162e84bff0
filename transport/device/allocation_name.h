// The encoded name by which one process identifies device memory to another.

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

// An allocation, described by the process that created it.
struct AllocationName {
  abi::Uuid device = {};
  uint64_t size = 0;  // in bytes; 1 to AllocationNames::kMaxSize
  // The address in the creating process. address + size does not overflow.
  abi::Address address = 0;
  uint64_t id = 0;  // the driver's; never reused in that process
  abi::IpcMemHandle ipc = {};
};

// Encodes and decodes names. Integers are little-endian:
//
//   offset  bytes
//        0      1  version, 1
//        1     16  device
//       17      8  size
//       25      8  address
//       33      8  id
//       41     64  ipc
//      105     16  mark: the first bytes of HMAC-SHA256(key, all before it)
//
// The key is a secret of this object, so only this object can produce a valid
// mark. Without the mark, a peer could forge a name that denotes this process's
// own memory. Thread-safe.
class AllocationNames {
 public:
  static constexpr size_t kBytes = 121;
  // Limits the size of an allocation, in bytes: 1 TiB, more than any device
  // has.
  static constexpr uint64_t kMaxSize = uint64_t{1} << 40;

  // Makes a new key. Returns an error of getrandom().
  static absl::StatusOr<AllocationNames> Create();

  std::string Encode(const AllocationName& name) const;

  struct Decoded {
    AllocationName name;
    bool is_own = false;  // encoded by this object
  };
  // Decodes any bytes. Returns INVALID_ARGUMENT if the bytes are not a name,
  // have another version, or name an impossible allocation.
  absl::StatusOr<Decoded> Decode(absl::string_view bytes) const;

 private:
  explicit AllocationNames(std::string key) : key_(std::move(key)) {}

  std::string MarkOf(absl::string_view bytes) const;

  std::string key_;
};

}  // namespace device
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_DEVICE_ALLOCATION_NAME_H_
