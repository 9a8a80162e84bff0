// Chunks that are pushed before the peer requests them.

#include <algorithm>
#include <cstring>

#include "transport/fabric/tcp/endpoint.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

// Marks the key of a region whose first chunk is pushed.
constexpr uint64_t kPushed = uint64_t{1} << 63;

}  // namespace

absl::StatusOr<Exposure> Endpoint::ExposeToPush(
    const memory::Payload& payload) {
  return Keep(next_key_++ | kPushed, payload);
}

void Endpoint::Push(const RemoteRegion& region) {
  if (broken_) return;
  to_push_.push_back(region[0].key);
  WriteQueued();
}

void Endpoint::ServePushes() {
  const size_t end = queue_.bytes() + kServedBytesPerWrite;
  for (; !to_push_.empty() && queue_.bytes() < end; to_push_.pop_front()) {
    const uint64_t key = to_push_.front();
    auto it = exposed_.find(key);
    if (it != exposed_.end()) {
      const auto size =
          static_cast<uint32_t>(std::min(it->second.size(), kChunkBytes));
      if (AddPart(UnitHeader{size, UnitType::kPush, key}, it->second, 0)) {
        continue;
      }
    }
    queue_.Add(UnitHeader{0, UnitType::kPushVoid, key}, {});
  }
}

// Returns true if the peer pushes this chunk and the push has yet to come. If
// the push has come and was dropped, because no read waited, returns false: the
// chunk must be requested.
bool Endpoint::WillBePushed(const RemotePart& part, uint64_t offset,
                            size_t size) const {
  return (part.key & kPushed) != 0 && part.offset == 0 && offset == 0 &&
         size == std::min<uint64_t>(part.length, kChunkBytes) &&
         part.key > last_pushed_ && expected_.count(part.key) == 0;
}

void Endpoint::BeginPush(uint64_t key) {
  if ((key & kPushed) == 0 || key <= last_pushed_) {
    return Break(absl::InvalidArgumentError("tcp: a push out of order"));
  }
  last_pushed_ = key;
  auto it = expected_.find(key);
  if (it != expected_.end() && unit_.type == UnitType::kPush &&
      it->second.into.size() != unit_.length) {
    return Break(absl::InvalidArgumentError("tcp: a push of another size"));
  }
  // Breaks if earlier pushes were left out, because their reads would wait for
  // ever. There may be no read that waits for this push.
  if (!expected_.empty() && expected_.begin()->first < key) {
    Break(absl::InvalidArgumentError("tcp: a push was left out"));
  }
}

size_t Endpoint::TakePush(absl::Span<const uint8_t> bytes) {
  auto it = expected_.find(unit_.cookie);
  if (it != expected_.end()) {
    memcpy(it->second.into.data() + body_received_, bytes.data(), bytes.size());
  }
  body_received_ += bytes.size();
  if (body_received_ == unit_.length) {
    in_body_ = false;
    FinishPush(unit_.cookie, absl::OkStatus());
  }
  return bytes.size();
}

// Drops the chunk if no read waits for it.
void Endpoint::FinishPush(uint64_t key, const absl::Status& status) {
  auto it = expected_.find(key);
  if (it == expected_.end()) return;
  const uint64_t cookie = it->second.cookie;
  expected_.erase(it);
  events_->OnReadDone(cookie, status);
}

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
