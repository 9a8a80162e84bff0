#include "transport/event_engine/stream/outgoing.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"

namespace penstock {
namespace event_engine {
namespace {

// Caps the bytes of one packet. A ring then has room for several packets, and
// the receiver starts while the sender still copies.
constexpr size_t kMaxPacketBytes = 32 * 1024;
// Caps the bytes of one region, so that the receiver starts early. Also caps
// the pieces of one region, so that a list of tiny slices is copied instead.
constexpr size_t kMaxRegionBytes = 1024 * 1024;

}  // namespace

bool Outgoing::SendPacket(const Packet& packet) {
  std::string bytes = EncodeHead(packet);
  bytes.append(reinterpret_cast<const char*>(packet.bytes.data()),
               packet.bytes.size());
  told_ = packet.acknowledged;
  if (path_->SendOwned(&bytes)) return true;
  stuck_ = std::move(bytes);
  return false;
}

void Outgoing::MoveTo(fabric::Endpoint* path) {
  path_ = path;
  sent_ = acknowledged_ = end_;
  Packet begin;
  begin.kind = Packet::Kind::kBegin;
  begin.offset = end_;
  begin.acknowledged = *consumed_;
  has_begun_ = SendPacket(begin);
}

void Outgoing::Write(const memory::Payload& bytes) {
  for (const memory::Bytes& piece : bytes.pieces()) {
    if (piece.size == 0) continue;
    end_ += piece.size;
    waiting_.push_back(piece);
  }
  Pump();
}

void Outgoing::Pump() {
  if (path_ == nullptr) return;
  const bool was_stuck = !stuck_.empty();
  if (was_stuck) {
    if (!path_->SendOwned(&stuck_)) return;
    stuck_.clear();
    has_begun_ = true;
  }
  while (!waiting_.empty() && HasWindow()) {
    if (!SendSome()) return;
  }
  if (was_stuck) SendAck();  // SendAck() has skipped it meanwhile
}

bool Outgoing::HasWindow() const {
  return sent_ - acknowledged_ < kWindowBytes && kept_.size() < kMaxKeptPackets;
}

bool Outgoing::SendSome() {
  const uint64_t room = kWindowBytes - (sent_ - acknowledged_);
  const uint64_t size = std::min(end_ - sent_, room);
  const fabric::Capabilities& can = path_->capabilities();
  if (can.can_load && size > can.eager_max_bytes) {
    bool exposed = false;
    const bool sent =
        SendRegion(std::min<uint64_t>(size, kMaxRegionBytes), &exposed);
    if (exposed) return sent;
  }
  const size_t most =
      std::min(kMaxPacketBytes, can.max_packet_bytes - kHeadBytes);
  return SendBytes(std::min<uint64_t>(size, most));
}

bool Outgoing::SendBytes(size_t size) {
  Kept kept;
  kept.bytes = TakeWaiting(size);
  Packet packet;
  packet.kind = Packet::Kind::kBytes;
  packet.offset = sent_;
  packet.acknowledged = told_ = *consumed_;
  std::string bytes = EncodeHead(packet);
  bytes.resize(kHeadBytes + size);
  kept.bytes.CopyTo(reinterpret_cast<uint8_t*>(&bytes[kHeadBytes]));
  sent_ += size;
  kept.end = sent_;
  kept_.push_back(std::move(kept));
  if (path_->SendOwned(&bytes)) return true;
  stuck_ = std::move(bytes);
  return false;
}

bool Outgoing::SendRegion(size_t size, bool* exposed) {
  absl::StatusOr<fabric::Exposure> exposure =
      path_->Expose(FirstWaiting(size), kMaxParts);
  *exposed = exposure.ok();
  if (!exposure.ok()) return false;
  released_.push_back(TakeWaiting(size));  // perhaps copied
  Packet packet;
  packet.kind = Packet::Kind::kRegion;
  packet.offset = sent_;
  packet.acknowledged = *consumed_;
  packet.region = exposure->region;
  sent_ += size;
  kept_.push_back({sent_, std::move(exposure->stable), packet.region});
  return SendPacket(packet);
}

memory::Payload Outgoing::FirstWaiting(size_t size) const {
  memory::Payload first;
  for (const memory::Bytes& piece : waiting_) {
    if (first.size() == size) break;
    first.Append(piece.Part(0, std::min(piece.size, size - first.size())));
  }
  return first;
}

memory::Payload Outgoing::TakeWaiting(size_t size) {
  memory::Payload taken;
  while (taken.size() < size) {
    memory::Bytes& piece = waiting_.front();
    const size_t part = std::min(piece.size, size - taken.size());
    if (part == piece.size) {
      taken.Append(std::move(piece));
      waiting_.pop_front();
      continue;
    }
    taken.Append(piece.Part(0, part));
    piece = piece.Part(part, piece.size - part);
  }
  return taken;
}

void Outgoing::SendAck() {
  if (path_ == nullptr || told_ == *consumed_ || !stuck_.empty()) return;
  Packet packet;
  packet.acknowledged = *consumed_;
  SendPacket(packet);
}

absl::Status Outgoing::Acknowledge(uint64_t offset) {
  // Ignores old acknowledgements, and all acknowledgements while there is no
  // path. The other direction may move to the path first. A packet may be older
  // than the last acknowledgement on TCP.
  if (path_ == nullptr || offset <= acknowledged_) return absl::OkStatus();
  if (offset > sent_) {
    return absl::InvalidArgumentError(
        "the peer acknowledges bytes that were not sent");
  }
  acknowledged_ = offset;
  while (!kept_.empty() && kept_.front().end <= offset) {
    if (!kept_.front().region.empty()) path_->Withdraw(kept_.front().region);
    released_.push_back(std::move(kept_.front().bytes));
    kept_.pop_front();
  }
  return absl::OkStatus();
}

memory::Bytes Outgoing::NewMark() const {
  auto mark = std::make_shared<std::string>(EncodeMark(acknowledged_));
  const auto* const data = reinterpret_cast<const uint8_t*>(mark->data());
  return memory::Bytes{data, mark->size(), mark};
}

memory::Payload Outgoing::MoveBack() {
  path_ = nullptr;
  stuck_.clear();
  memory::Payload back;
  if (has_begun_) back.Append(NewMark());
  for (Kept& kept : kept_) {
    const uint64_t begin = kept.end - kept.bytes.size();
    const uint64_t skip = acknowledged_ > begin ? acknowledged_ - begin : 0;
    for (memory::Bytes& piece :
         kept.bytes.Part(skip, kept.bytes.size() - skip)) {
      back.Append(std::move(piece));
    }
    released_.push_back(std::move(kept.bytes));
  }
  kept_.clear();
  // Moves an owner of each piece to released_, which the caller drops without
  // its lock. The caller may therefore copy and drop the result under its lock.
  memory::Payload unsent;
  for (memory::Bytes& piece : waiting_) {
    back.Append(piece);
    unsent.Append(std::move(piece));
  }
  released_.push_back(std::move(unsent));
  waiting_.clear();
  sent_ = end_;
  return back;
}

std::vector<memory::Payload> Outgoing::TakeReleased() {
  return std::exchange(released_, {});
}

}  // namespace event_engine
}  // namespace penstock
