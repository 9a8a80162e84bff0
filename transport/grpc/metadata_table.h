// Numbers for metadata entries that repeat on a connection.

#ifndef PENSTOCK_TRANSPORT_GRPC_METADATA_TABLE_H_
#define PENSTOCK_TRANSPORT_GRPC_METADATA_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/node_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "src/core/lib/slice/slice.h"
#include "transport/grpc/internal/grpc_abi.h"

namespace penstock {
namespace core {

// The first number, and the caps of a connection's table. These values are part
// of the protocol. An entry is a key and a value, as metadata_codec.h encodes
// them. A number is never reused, because encoded metadata may be sent later,
// or never.
constexpr uint8_t kFirstEntry = 192;
constexpr size_t kMaxEntries = 64;
constexpr size_t kMaxEntryBytes = 4 * 1024;
constexpr size_t kMaxTableBytes = 16 * 1024;
// The bytes before the value of an entry with a known key: the key's number and
// the value's length.
constexpr size_t kKnownPrefix = 5;

// The sender's table. Not thread-safe.
class SentEntries {
  using Numbers = absl::node_hash_map<std::string, uint8_t>;

 public:
  struct Number {
    uint8_t number = 0;   // 0: no number; send the entry itself
    bool is_new = false;  // tell the peer the number first
  };

  // Returns the number of `entry`, which must not be empty. Assigns a number
  // only when an entry repeats soon. Entries that differ in each call therefore
  // do not use up the numbers.
  Number Find(absl::string_view entry);
  // Returns the number of the entry if the last entry with this key had the
  // same value. This is the usual case. Otherwise returns 0, and the caller
  // calls the slower Find().
  uint8_t FindRecent(uint8_t key, absl::string_view value) const {
    const Numbers::value_type* const recent = recent_[key % kRecentKeys];
    if (recent == nullptr) return 0;
    const absl::string_view entry = recent->first;
    const bool is_same = static_cast<uint8_t>(entry[0]) == key &&
                         entry.size() == kKnownPrefix + value.size() &&
                         entry.substr(kKnownPrefix) == value;
    return is_same ? recent->second : 0;
  }

 private:
  static constexpr size_t kRemembered = 64;
  // The number of remembered hashes per bucket. With a single hash per bucket,
  // two alternating entries could evict each other forever.
  static constexpr size_t kWays = 4;
  static constexpr size_t kRecentKeys = 32;

  bool CameBefore(size_t hash);

  Numbers numbers_;
  // The latest entry of each known key.
  const Numbers::value_type* recent_[kRecentKeys] = {};
  size_t bytes_ = 0;
  // Hashes of entries: kWays for each bucket, the latest first.
  std::vector<size_t> remembered_;
};

// The receiver's table. Not thread-safe.
class ReceivedEntries {
 public:
  // Adds an entry with its number. Returns INVALID_ARGUMENT if the number is
  // not the next number, or if the table exceeds a cap. Does not decode the
  // entry: the entry is decoded when it is used.
  absl::Status Add(uint32_t number, absl::string_view entry);
  // Returns the entry with this number, or null.
  const grpc_core::Slice* Find(uint8_t number) const;

 private:
  std::vector<grpc_core::Slice> entries_;
  size_t bytes_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_METADATA_TABLE_H_
