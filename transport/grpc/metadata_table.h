// Numbers for metadata that repeats on a connection.

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
#include "transport/grpc/grpc_abi.h"

namespace penstock {
namespace core {

// Part of the protocol. An entry is a key and a value, as metadata_codec.h
// encodes them. A number is never reused, because encoded metadata may be sent
// out of order, or not at all.
constexpr uint8_t kFirstEntry = 192;
constexpr size_t kMaxEntries = 64;
constexpr size_t kMaxEntryBytes = 4 * 1024;
constexpr size_t kMaxTableBytes = 16 * 1024;
// The bytes before the value of a known key: the key's number, and the value's
// length.
constexpr size_t kKnownPrefix = 5;

// The sender's side. Not thread-safe.
class SentEntries {
  using Numbers = absl::node_hash_map<std::string, uint8_t>;

 public:
  struct Number {
    uint8_t number = 0;   // 0: it has none, and is sent as it is
    bool is_new = false;  // the peer must be told of it first
  };

  // Returns the number of `entry`, which is not empty. An entry gets a number
  // when it comes a second time within a short while, so that entries that
  // differ with each call do not use up the numbers.
  Number Find(absl::string_view entry);
  // Returns the number of the entry, if the entry is the last of its key: the
  // usual case. If not, returns 0. The caller then tries Find(), which is
  // slower.
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
  // As many of one remainder are remembered: else two that come by turns could
  // drive each other out for ever.
  static constexpr size_t kWays = 4;
  static constexpr size_t kRecentKeys = 32;

  bool CameBefore(size_t hash);

  Numbers numbers_;
  // The last entry of each known key.
  const Numbers::value_type* recent_[kRecentKeys] = {};
  size_t bytes_ = 0;
  // Hashes of entries: kWays for each remainder, the latest first.
  std::vector<size_t> remembered_;
};

// The receiver's side. Not thread-safe.
class ReceivedEntries {
 public:
  // Adds an entry under its number. Returns INVALID_ARGUMENT if the number is
  // not the next one, or if there is too much. The entry is decoded only when
  // it is used.
  absl::Status Add(uint32_t number, absl::string_view entry);
  // Returns null if there is no entry of that number.
  const grpc_core::Slice* Find(uint8_t number) const;

 private:
  std::vector<grpc_core::Slice> entries_;
  size_t bytes_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_METADATA_TABLE_H_
