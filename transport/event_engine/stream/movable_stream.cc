#include "transport/event_engine/stream/movable_stream.h"

#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace penstock {
namespace event_engine {
namespace {

// The number of consumed bytes after which this side acknowledges. With this
// number, the sender soon gets its memory back, and small messages cause no
// acknowledgements of their own.
constexpr uint64_t kAckBytes = 32 * 1024;

}  // namespace

void MovableStream::FollowRecords() {
  sent_records_.emplace();
  incoming_.FollowRecords();
}

void MovableStream::IgnoreRecords() {
  if (incoming_.expects_marks()) return;
  sent_records_.reset();
  incoming_.IgnoreRecords();
}

void MovableStream::MoveTo(std::shared_ptr<fabric::Endpoint> path) {
  if (path_ != nullptr || !error_.ok()) return;
  path_ = std::move(path);
  peer_has_greeted_ = false;
  peer_has_moved_ = false;
  incoming_.ExpectMarks();
  path_->Start(this);
  Nudge();
}

// Sends nothing if the path has no room: other packets are then on the path,
// and they ring the peer's doorbell.
void MovableStream::Nudge() {
  if (path_ == nullptr || lost_) return;
  Packet packet;
  packet.acknowledged = consumed_;
  const std::string bytes = EncodeHead(packet);
  path_->Send({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
}

void MovableStream::NoteWritten(absl::Span<const uint8_t> bytes) {
  if (sent_records_.has_value()) sent_records_->Take(bytes);
}

void MovableStream::CountWritten(size_t size) {
  outgoing_.CountTcp(size);
  MoveIfPossible();
}

void MovableStream::Write(const memory::Payload& bytes) {
  for (const memory::Bytes& piece : bytes.pieces()) {
    NoteWritten({piece.data, piece.size});
  }
  outgoing_.Write(bytes);
}

void MovableStream::MoveIfPossible() {
  if (!peer_has_greeted_ || lost_ || outgoing_.on_path()) return;
  if (sent_records_.has_value() && !sent_records_->at_boundary()) return;
  outgoing_.MoveTo(path_.get());
}

bool MovableStream::IsPlain(size_t size) const {
  return due_.size() == 0 && incoming_.IsPlain(size);
}

void MovableStream::CountReceived(size_t size) {
  incoming_.CountTcp(size);
  consumed_ += size;
}

void MovableStream::OnTcp(memory::Bytes bytes) {
  Check(incoming_.OnTcp(std::move(bytes), &due_));
  // Drops the path, because its remaining packets may arrive after the mark.
  if (incoming_.TakePeerHasLeft()) {
    LosePath(absl::UnavailableError("the peer has left the path"));
  }
}

bool MovableStream::Poll() {
  if (path_ == nullptr || lost_ || !error_.ok()) return false;
  const std::shared_ptr<fabric::Endpoint> path = path_;
  const bool any = path->Poll();
  outgoing_.Pump();  // acknowledgements may have come
  return any;
}

memory::Payload MovableStream::Take() {
  memory::Payload taken = due_.Take();
  consumed_ += taken.size();
  if (!lost_ && consumed_ - acked_ >= kAckBytes) {
    acked_ = consumed_;
    outgoing_.SendAck();
  }
  return taken;
}

void MovableStream::OnPacket(absl::Span<const uint8_t> packet) {
  if (!error_.ok()) return;
  peer_has_greeted_ = true;
  MoveIfPossible();
  const absl::StatusOr<Packet> decoded = DecodePacket(packet);
  Check(decoded.ok() ? Handle(*decoded) : decoded.status());
}

absl::Status MovableStream::Handle(const Packet& packet) {
  absl::Status good = outgoing_.Acknowledge(packet.acknowledged);
  if (!good.ok()) return good;
  switch (packet.kind) {
    case Packet::Kind::kAck:
      return absl::OkStatus();
    case Packet::Kind::kBegin:
      if (peer_has_moved_) {
        return absl::InvalidArgumentError("the peer moves twice to one path");
      }
      peer_has_moved_ = true;
      return incoming_.OnBegin(packet.offset, &due_);
    case Packet::Kind::kBytes:
    case Packet::Kind::kRegion:
      break;
  }
  if (!peer_has_moved_) {
    return absl::InvalidArgumentError("the peer sends before it moves");
  }
  if (packet.kind == Packet::Kind::kRegion) return HandleRegion(packet);
  return HandleBytes(packet.bytes, packet.offset);
}

absl::Status MovableStream::HandleBytes(absl::Span<const uint8_t> bytes,
                                        uint64_t offset) {
  absl::StatusOr<memory::Bytes> copy = memory::CopyBytes(bytes);
  if (!copy.ok()) return copy.status();
  return incoming_.OnPath(offset, memory::Payload(*std::move(copy)), &due_);
}

absl::Status MovableStream::HandleRegion(const Packet& packet) {
  absl::StatusOr<memory::Payload> loaded = path_->Load(packet.region);
  if (!loaded.ok()) return loaded.status();
  return incoming_.OnPath(packet.offset, *loaded, &due_);
}

void MovableStream::OnBroken(const absl::Status& cause) { LosePath(cause); }

void MovableStream::LosePath(absl::Status cause) {
  if (path_ == nullptr || lost_) return;
  lost_ = true;
  loss_ = std::move(cause);
  // Ends the connection if the peer may have moved at an offset that this side
  // does not know. If the peer has closed the path (UNAVAILABLE), all bytes
  // that it sent have arrived, so the offset is known. With records, a mark
  // carries the offset.
  if (incoming_.has_records()) return;
  if (!peer_has_moved_ && !absl::IsUnavailable(loss_)) Check(loss_);
}

memory::Payload MovableStream::LeavePath() {
  lost_ = false;
  memory::Payload back;
  if (outgoing_.on_path()) back = outgoing_.MoveBack();
  peer_has_greeted_ = false;
  path_.reset();
  return back;
}

void MovableStream::Check(const absl::Status& status) {
  if (error_.ok()) error_ = status;
}

}  // namespace event_engine
}  // namespace penstock
