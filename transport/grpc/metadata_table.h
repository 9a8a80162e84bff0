// Metadata that repeats on a connection, by numbers that are agreed as it goes.

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

// Of the wire. An entry is a key and a value as metadata_codec.h encodes them.
// Numbers are never given again: what was encoded may leave later than what
// follows it, or never.
constexpr uint8_t kFirstEntry = 192;
constexpr size_t kMaxEntries = 64;
constexpr size_t kMaxEntryBytes = 4 * 1024;
constexpr size_t kMaxTableBytes = 16 * 1024;
// Before the value of a known key: its number, and the value's length.
constexpr size_t kKnownPrefix = 5;

// The sender's side. Not thread-safe.
class SentEntries {
  using Numbers = absl::node_hash_map<std::string, uint8_t>;

 public:
  struct Number {
    uint8_t number = 0;   // 0: it has none, and goes as it is
    bool is_new = false;  // the peer is to be told of it first
  };

  // Of an entry, which is not empty. It gets its number when it comes the
  // second time in a short while, so that what differs in each call takes none.
  Number Find(absl::string_view entry);
  // The number of a known key's entry if that came last, which it mostly does;
  // else 0, and Find() may know it.
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
  static constexpr size_t kRecentKeys = 32;

  bool CameBefore(size_t hash);

  Numbers numbers_;
  // Of each known key, the entry that came last.
  const Numbers::value_type* recent_[kRecentKeys] = {};
  size_t bytes_ = 0;
  std::vector<size_t> remembered_;  // hashes, each at its place
};

// The receiver's side. Not thread-safe.
class ReceivedEntries {
 public:
  // INVALID_ARGUMENT where the number is not the next one, or the entry too
  // long; what it means is looked at when it is used.
  absl::Status Add(uint32_t number, absl::string_view entry);
  // Null: there is none.
  const grpc_core::Slice* Find(uint8_t number) const;

 private:
  std::vector<grpc_core::Slice> entries_;
  size_t bytes_ = 0;
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_METADATA_TABLE_H_
