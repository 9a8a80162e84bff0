#include "transport/event_engine/stream/incoming.h"

#include <algorithm>
#include <utility>

#include "absl/status/statusor.h"
#include "transport/event_engine/stream/outgoing.h"

namespace penstock {
namespace event_engine {
namespace {

// Limits the number of moves to a path that TCP has not reached yet.
constexpr size_t kMaxMoves = 16;

absl::Status BeyondWindow() {
  return absl::InvalidArgumentError("the peer exceeds the stream's window");
}

absl::Status WrongOffset() {
  return absl::InvalidArgumentError(
      "the peer's stream continues at a wrong offset");
}

// Removes and returns the first `size` bytes.
memory::Bytes TakeFirst(size_t size, memory::Bytes* bytes) {
  memory::Bytes first = bytes->Part(0, size);
  *bytes = bytes->Part(size, bytes->size - size);
  return first;
}

}  // namespace

bool Incoming::IsPlain(size_t size) const {
  if (records_.has_value() || on_path_ || tcp_at_ != received_) return false;
  return next_.empty() || size < next_.front().begin - tcp_at_;
}

void Incoming::CountTcp(size_t size) {
  tcp_at_ += size;
  received_ += size;
}

absl::Status Incoming::OnTcp(memory::Bytes bytes, Backlog* due) {
  while (bytes.size > 0) {
    if (!on_path_ && !IsMark(bytes)) {
      TakePlain(&bytes, due);
      continue;
    }
    absl::Status taken = TakeMark(&bytes);
    if (!taken.ok()) return taken;
    MoveIfReached(due);
  }
  return absl::OkStatus();
}

void Incoming::TakePlain(memory::Bytes* bytes, Backlog* due) {
  uint64_t size = bytes->size;
  if (!next_.empty()) size = std::min(size, next_.front().begin - tcp_at_);
  if (tcp_at_ < received_) {
    size = std::min(size, received_ - tcp_at_);  // duplicates
  } else if (records_.has_value()) {
    TlsRecords records = *records_;
    size = records.TakeRecord({bytes->data, size});
  }
  const uint64_t offset = tcp_at_;
  tcp_at_ += size;
  Deliver(offset, TakeFirst(size, bytes), due);
  MoveIfReached(due);
}

bool Incoming::IsMark(const memory::Bytes& bytes) const {
  if (!mark_.empty()) return true;
  return expects_marks_ && records_.has_value() && records_->at_boundary() &&
         tcp_at_ == received_ && bytes.data[0] == kMarkFirstByte;
}

void Incoming::MoveIfReached(Backlog* due) {
  if (on_path_ || next_.empty() || tcp_at_ != next_.front().begin) return;
  on_path_ = true;
  path_ = std::move(next_.front());
  next_.pop_front();
  early_ -= path_.early.size();
  uint64_t at = path_.begin;
  const memory::Payload early = path_.early.Take();
  for (const memory::Bytes& piece : early.pieces()) {
    Deliver(at, piece, due);
    at += piece.size;
  }
}

absl::Status Incoming::TakeMark(memory::Bytes* bytes) {
  const memory::Bytes part =
      TakeFirst(std::min(bytes->size, kMarkBytes - mark_.size()), bytes);
  mark_.append(reinterpret_cast<const char*>(part.data), part.size);
  if (mark_.size() < kMarkBytes) return absl::OkStatus();
  const absl::StatusOr<uint64_t> offset = DecodeMark(
      {reinterpret_cast<const uint8_t*>(mark_.data()), mark_.size()});
  if (!offset.ok()) return offset.status();
  if (*offset > received_ || (on_path_ && *offset < path_.begin)) {
    return WrongOffset();
  }
  mark_.clear();
  tcp_at_ = *offset;
  on_path_ = false;
  peer_has_left_ = records_.has_value() && next_.empty();
  return absl::OkStatus();
}

absl::Status Incoming::OnBegin(uint64_t offset, Backlog* due) {
  const uint64_t least = next_.empty() ? received_ : next_.back().at;
  if (offset < least || next_.size() == kMaxMoves) return WrongOffset();
  next_.push_back({offset, offset, {}});
  MoveIfReached(due);
  return absl::OkStatus();
}

absl::Status Incoming::OnPath(uint64_t offset, const memory::Payload& bytes,
                              Backlog* due) {
  if (next_.empty() && !on_path_) return WrongOffset();
  Move& move = next_.empty() ? path_ : next_.back();
  if (offset != move.at) return WrongOffset();
  const uint64_t consumed = received_ - due->size();
  if (offset + bytes.size() > std::max(consumed, move.begin) + kWindowBytes) {
    return BeyondWindow();
  }
  move.at += bytes.size();
  if (next_.empty()) {
    for (const memory::Bytes& piece : bytes.pieces()) {
      Deliver(offset, piece, due);
      offset += piece.size;
    }
    return absl::OkStatus();
  }
  early_ += bytes.size();
  if (early_ > kWindowBytes) return BeyondWindow();
  for (const memory::Bytes& piece : bytes.pieces()) move.early.Append(piece);
  return absl::OkStatus();
}

// Skips bytes that have already been delivered.
void Incoming::Deliver(uint64_t offset, const memory::Bytes& bytes,
                       Backlog* due) {
  const uint64_t skip =
      std::min<uint64_t>(received_ - std::min(received_, offset), bytes.size);
  if (skip == bytes.size) return;
  const memory::Bytes fresh = bytes.Part(skip, bytes.size - skip);
  if (records_.has_value()) records_->Take({fresh.data, fresh.size});
  due->Append(fresh);
  received_ += bytes.size - skip;
}

}  // namespace event_engine
}  // namespace penstock
