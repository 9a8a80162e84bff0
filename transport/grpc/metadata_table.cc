#include "transport/grpc/metadata_table.h"

#include <algorithm>

namespace penstock {
namespace core {

constexpr size_t SentEntries::kRemembered;
constexpr size_t SentEntries::kWays;
constexpr size_t SentEntries::kRecentKeys;

bool SentEntries::CameBefore(size_t hash) {
  if (remembered_.empty()) remembered_.resize(kRemembered);
  size_t* const first = &remembered_[hash % (kRemembered / kWays) * kWays];
  if (std::find(first, first + kWays, hash) != first + kWays) return true;
  std::copy_backward(first, first + kWays - 1, first + kWays);
  *first = hash;
  return false;
}

SentEntries::Number SentEntries::Find(absl::string_view entry) {
  Number result;
  // First compares with the key's latest entry. The first byte of an entry is
  // the number of its key.
  const Numbers::value_type*& recent =
      recent_[static_cast<uint8_t>(entry[0]) % kRecentKeys];
  if (recent != nullptr && recent->first == entry) {
    result.number = recent->second;
    return result;
  }
  const size_t hash = numbers_.hash_function()(entry);
  const auto it = numbers_.find(entry, hash);
  if (it != numbers_.end()) {
    recent = &*it;
    result.number = it->second;
    return result;
  }
  if (numbers_.size() == kMaxEntries || entry.size() > kMaxEntryBytes ||
      bytes_ + entry.size() > kMaxTableBytes || !CameBefore(hash)) {
    return result;
  }
  bytes_ += entry.size();
  result.number = static_cast<uint8_t>(kFirstEntry + numbers_.size());
  result.is_new = true;
  recent = &*numbers_.emplace(entry, result.number).first;
  return result;
}

absl::Status ReceivedEntries::Add(uint32_t number, absl::string_view entry) {
  if (number != kFirstEntry + entries_.size() ||
      entries_.size() == kMaxEntries) {
    return absl::InvalidArgumentError(
        "the peer's numbers of metadata are not in order");
  }
  bytes_ += entry.size();
  if (entry.size() > kMaxEntryBytes || bytes_ > kMaxTableBytes) {
    return absl::InvalidArgumentError("the peer's metadata table is too large");
  }
  entries_.push_back(
      grpc_core::Slice::FromCopiedBuffer(entry.data(), entry.size()));
  return absl::OkStatus();
}

const grpc_core::Slice* ReceivedEntries::Find(uint8_t number) const {
  const size_t index = number - kFirstEntry;
  return index < entries_.size() ? &entries_[index] : nullptr;
}

}  // namespace core
}  // namespace penstock
