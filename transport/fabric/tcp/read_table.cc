#include "transport/fabric/tcp/read_table.h"

#include <algorithm>

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

bool IsPush(UnitType type) {
  return type == UnitType::kPush || type == UnitType::kPushVoid;
}

}  // namespace

bool ReadTable::Expect(const RemotePart& part, uint64_t offset,
                       const Read& read) {
  const bool will_come =
      (part.key & kPushed) != 0 && part.offset == 0 && offset == 0 &&
      read.into.size() == std::min<uint64_t>(part.length, kChunkBytes) &&
      part.key > last_pushed_;
  return will_come && expected_.emplace(part.key, read).second;
}

uint64_t ReadTable::Request(const Read& read) {
  requested_.emplace(next_number_, read);
  return next_number_++;
}

void ReadTable::Divert(uint64_t cookie) {
  for (Reads* reads : {&requested_, &expected_}) {
    for (auto& [key, read] : *reads) {
      if (read.cookie != cookie) continue;
      read.into = absl::Span<uint8_t>(nullptr, read.into.size());
    }
  }
}

absl::Status ReadTable::BeginPush(const UnitHeader& unit) {
  const uint64_t key = unit.cookie;
  if ((key & kPushed) == 0 || key <= last_pushed_) {
    return absl::InvalidArgumentError("tcp: a push out of order");
  }
  last_pushed_ = key;
  const Read* const read = Find(unit);
  if (read != nullptr && unit.type == UnitType::kPush &&
      read->into.size() != unit.length) {
    return absl::InvalidArgumentError("tcp: a push of another size");
  }
  // Rejects a push that skips earlier pushes, because their reads would wait
  // forever. Accepts a push for which no read waits.
  if (!expected_.empty() && expected_.begin()->first < key) {
    return absl::InvalidArgumentError("tcp: a push was left out");
  }
  return absl::OkStatus();
}

const ReadTable::Read* ReadTable::Find(const UnitHeader& unit) const {
  const Reads& reads = IsPush(unit.type) ? expected_ : requested_;
  const auto it = reads.find(unit.cookie);
  return it == reads.end() ? nullptr : &it->second;
}

absl::optional<uint64_t> ReadTable::Take(const UnitHeader& unit) {
  const Read* const read = Find(unit);
  if (read == nullptr) return absl::nullopt;
  const uint64_t cookie = read->cookie;
  (IsPush(unit.type) ? expected_ : requested_).erase(unit.cookie);
  return cookie;
}

std::vector<uint64_t> ReadTable::TakeAll() {
  std::vector<uint64_t> cookies;
  for (Reads* reads : {&requested_, &expected_}) {
    for (const auto& read : *reads) cookies.push_back(read.second.cookie);
    reads->clear();
  }
  return cookies;
}

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
