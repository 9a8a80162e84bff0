#include "ps/shards/wire.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "ps/shards/entry.h"
#include "ps/shards/state_wire.h"
#include "tensor_service/calls.h"
#include "tensor_service/message.h"

namespace penstock::ps {
namespace {

using replication::Answer;
using replication::Append;
using replication::EntryPtr;
using replication::Envelope;
using replication::LeaseStamp;
using replication::Snapshot;
using Message = tensor::Message<v1::ReplicateHeader>;
using Kind = EventPayload::Kind;

absl::Status Malformed(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("replicate: ", what));
}

void ToMessage(const Envelope& envelope, v1::ReplicaEnvelope* message) {
  message->set_run(envelope.group.run);
  message->set_model(envelope.group.model);
  message->set_build(envelope.group.build);
  message->set_shard(envelope.group.shard);
  message->set_server(envelope.from.server);
  message->set_incarnation(envelope.from.incarnation);
  message->set_view(envelope.view);
}

absl::StatusOr<Envelope> FromMessage(const v1::ReplicaEnvelope& message) {
  if (message.build().size() > kMaxBuildName ||
      message.server().size() > replication::kMaxServerName ||
      message.shard() >= replication::kMaxShards ||
      message.view() > replication::kMaxViewNumber) {
    return Malformed("the envelope is out of bounds");
  }
  Envelope envelope;
  envelope.group = {message.run(), message.model(), message.build(),
                    message.shard()};
  envelope.from = {message.server(), message.incarnation()};
  envelope.view = message.view();
  return envelope;
}

void ToMessage(const LeaseStamp& stamp, v1::LeaseStamp* message) {
  message->set_sent_ns(absl::ToUnixNanos(stamp.sent));
  message->set_era(stamp.era);
}

LeaseStamp FromMessage(const v1::LeaseStamp& message) {
  return {absl::FromUnixNanos(message.sent_ns()), message.era()};
}

v1::LogEntry::Kind KindOf(const replication::Entry& entry) {
  if (!entry.pushes.empty()) return v1::LogEntry::PUSH;
  if (entry.joins.has_value()) return v1::LogEntry::JOIN;
  switch (static_cast<const EventPayload&>(*entry.payload).kind()) {
    case Kind::kHeartbeat:
      return v1::LogEntry::HEARTBEAT;
    case Kind::kLeave:
      return v1::LogEntry::LEAVE;
    case Kind::kLost:
      return v1::LogEntry::LOST;
    case Kind::kStart:
      return v1::LogEntry::START;
    case Kind::kCut:
      return v1::LogEntry::CUT;
  }
  return v1::LogEntry::START;
}

void SetCut(const CutPoint& cut, v1::LogEntry* message) {
  if (cut.version.has_value()) message->set_version(*cut.version);
  for (const RankClock& each : cut.clocks) {
    *message->add_clocks() = ToMessage(each);
  }
}

absl::StatusOr<CutPoint> CutIn(const v1::LogEntry& message) {
  CutPoint cut;
  if (message.has_version()) cut.version = message.version();
  bool is_sane = cut.version.value_or(0) <= kMaxClock;
  for (const v1::WorkerClock& each : message.clocks()) {
    cut.clocks.push_back(ps::FromMessage(each));
    const RankClock& clock = cut.clocks.back();
    is_sane &= clock.worker.rank < kMaxRanks && clock.clock <= kMaxClock;
  }
  if (!is_sane) return Malformed("a cut is out of bounds");
  return cut;
}

WorkerId WorkerOf(const replication::Entry& entry) {
  if (!entry.pushes.empty()) return entry.pushes.front().worker;
  if (entry.joins.has_value()) return *entry.joins;
  return static_cast<const EventPayload&>(*entry.payload).worker();
}

void AddEntry(const replication::Entry& entry, v1::AppendBody* body,
              tensor::Bundle* bundle) {
  v1::LogEntry* const message = body->add_entries();
  message->set_view(entry.view);
  message->set_kind(KindOf(entry));
  *message->mutable_worker() = ToMessage(WorkerOf(entry));
  if (message->kind() == v1::LogEntry::CUT) {
    SetCut(static_cast<const EventPayload&>(*entry.payload).cut(), message);
  }
  if (entry.pushes.empty()) return;
  const auto& push = static_cast<const PushPayload&>(*entry.payload);
  const auto& tensors = push.gradients().tensors;
  message->set_clock(entry.pushes.front().clock);
  message->set_tensors(static_cast<uint32_t>(tensors.size()));
  bundle->tensors.insert(bundle->tensors.end(), tensors.begin(), tensors.end());
}

absl::StatusOr<Kind> EventIn(v1::LogEntry::Kind kind) {
  switch (kind) {
    case v1::LogEntry::HEARTBEAT:
      return Kind::kHeartbeat;
    case v1::LogEntry::LEAVE:
      return Kind::kLeave;
    case v1::LogEntry::LOST:
      return Kind::kLost;
    case v1::LogEntry::START:
      return Kind::kStart;
    default:
      return Malformed("an entry of an unknown kind");
  }
}

// Decodes an entry. The tensors of a push come from `bundle`, from index
// `*taken` on. Advances `*taken`.
absl::StatusOr<EntryPtr> EntryIn(const v1::LogEntry& message, uint64_t seq,
                                 const tensor::Bundle& bundle, size_t* taken) {
  const WorkerId worker = ps::FromMessage(message.worker());
  if (worker.rank >= kMaxRanks || message.clock() >= kMaxClock) {
    return Malformed("a rank or clock is out of bounds");
  }
  auto entry = std::make_shared<replication::Entry>();
  entry->seq = seq;
  entry->view = message.view();
  if (message.kind() == v1::LogEntry::PUSH) {
    if (message.tensors() > bundle.tensors.size() - *taken) {
      return Malformed("tensors are missing");
    }
    const auto first =
        bundle.tensors.begin() + static_cast<std::ptrdiff_t>(*taken);
    tensor::Bundle gradients;
    gradients.tensors.assign(first, first + message.tensors());
    *taken += message.tensors();
    entry->pushes = {{worker, message.clock()}};
    entry->payload = std::make_shared<PushPayload>(std::move(gradients));
  } else if (message.kind() == v1::LogEntry::JOIN) {
    entry->joins = worker;
  } else if (message.kind() == v1::LogEntry::CUT) {
    auto cut = CutIn(message);
    if (!cut.ok()) return cut.status();
    entry->payload = std::make_shared<EventPayload>(*std::move(cut));
  } else {
    auto kind = EventIn(message.kind());
    if (!kind.ok()) return kind.status();
    entry->payload = std::make_shared<EventPayload>(*kind, worker);
  }
  return EntryPtr(std::move(entry));
}

absl::StatusOr<Append> AppendIn(const Message& message) {
  const v1::AppendBody& body = message.header.append();
  if (static_cast<size_t>(body.entries_size()) > kMaxEntries ||
      body.prev_seq() > kMaxSeq || body.committed() > 2 * kMaxSeq) {
    return Malformed("too many entries");
  }
  Append append;
  append.prev_seq = body.prev_seq();
  append.prev_view = body.prev_view();
  append.committed = body.committed();
  append.complete = body.complete();
  size_t taken = 0;
  uint64_t seq = append.prev_seq;
  for (const v1::LogEntry& each : body.entries()) {
    auto entry = EntryIn(each, ++seq, message.bundle, &taken);
    if (!entry.ok()) return entry.status();
    append.entries.push_back(*std::move(entry));
  }
  if (taken != message.bundle.tensors.size()) {
    return Malformed("there are tensors of no push");
  }
  return append;
}

absl::StatusOr<SnapshotPiece> PieceIn(const Message& message) {
  if (message.bundle.tensors.size() != 1) return Malformed("no piece");
  const tensor::Tensor& bytes = message.bundle.tensors.front().tensor;
  if (bytes.dtype() != tensor::DType::kUint8 ||
      bytes.byte_size() > kMaxPieceBytes || bytes.byte_size() == 0) {
    return Malformed("a piece of another type, or too long");
  }
  return SnapshotPiece{message.header.piece().id(),
                       message.header.piece().offset(), bytes};
}

}  // namespace

absl::StatusOr<grpc::ByteBuffer> ToBytes(const Append& append) {
  Message message;
  ToMessage(append.envelope, message.header.mutable_envelope());
  ToMessage(append.stamp, message.header.mutable_stamp());
  message.header.set_lease_us(absl::ToInt64Microseconds(append.lease));
  v1::AppendBody* const body = message.header.mutable_append();
  body->set_prev_seq(append.prev_seq);
  body->set_prev_view(append.prev_view);
  body->set_committed(append.committed);
  body->set_complete(append.complete);
  for (const EntryPtr& entry : append.entries) {
    AddEntry(*entry, body, &message.bundle);
  }
  return tensor::Encode(message);
}

absl::StatusOr<grpc::ByteBuffer> ToBytes(const Envelope& envelope,
                                         const SnapshotPiece& piece) {
  Message message;
  ToMessage(envelope, message.header.mutable_envelope());
  message.header.mutable_piece()->set_id(piece.id);
  message.header.mutable_piece()->set_offset(piece.offset);
  message.bundle.tensors.push_back({"piece", piece.bytes});
  return tensor::Encode(message);
}

absl::StatusOr<grpc::ByteBuffer> ToBytes(const Envelope& envelope,
                                         const SnapshotState& state) {
  Message message;
  ToMessage(envelope, message.header.mutable_envelope());
  *message.header.mutable_restore() = ToMessage(state);
  return tensor::Encode(message);
}

absl::StatusOr<grpc::ByteBuffer> ToBytes(const Snapshot& snapshot,
                                         uint64_t id) {
  Message message;
  ToMessage(snapshot.envelope, message.header.mutable_envelope());
  ToMessage(snapshot.stamp, message.header.mutable_stamp());
  message.header.set_lease_us(absl::ToInt64Microseconds(snapshot.lease));
  message.header.mutable_snapshot()->set_id(id);
  message.header.mutable_snapshot()->set_seq(snapshot.seq);
  message.header.mutable_snapshot()->set_seq_view(snapshot.seq_view);
  return tensor::Encode(message);
}

absl::StatusOr<ReplicateMessage> MessageIn(const grpc::ByteBuffer& bytes) {
  Message message;
  absl::Status status = tensor::Decode(bytes, &message);
  if (!status.ok()) return status;
  auto envelope = FromMessage(message.header.envelope());
  if (!envelope.ok()) return envelope.status();
  ReplicateMessage result;
  result.envelope = *std::move(envelope);
  const LeaseStamp stamp = FromMessage(message.header.stamp());
  // Only prevents an overflow; ps/replication refuses leases that are too long.
  const absl::Duration lease = absl::Microseconds(static_cast<int64_t>(
      std::min<uint64_t>(message.header.lease_us(), uint64_t{1} << 40)));
  switch (message.header.body_case()) {
    case v1::ReplicateHeader::kAppend: {
      auto append = AppendIn(message);
      if (!append.ok()) return append.status();
      result.append = *std::move(append);
      result.append->envelope = result.envelope;
      result.append->stamp = stamp;
      result.append->lease = lease;
      return result;
    }
    case v1::ReplicateHeader::kPiece: {
      auto piece = PieceIn(message);
      if (!piece.ok()) return piece.status();
      result.piece = *std::move(piece);
      return result;
    }
    case v1::ReplicateHeader::kRestore: {
      auto state = StateIn(message.header.restore(), result.envelope.group);
      if (!state.ok()) return state.status();
      result.restore = *std::move(state);
      return result;
    }
    case v1::ReplicateHeader::kSnapshot: {
      const v1::SnapshotBody& body = message.header.snapshot();
      if (body.seq() > kMaxSeq) return Malformed("a number is out of bounds");
      result.snapshot = Snapshot();
      result.snapshot->envelope = result.envelope;
      result.snapshot->seq = body.seq();
      result.snapshot->seq_view = body.seq_view();
      result.snapshot->stamp = stamp;
      result.snapshot->lease = lease;
      result.snapshot_id = body.id();
      return result;
    }
    case v1::ReplicateHeader::BODY_NOT_SET:
      break;
  }
  return Malformed("an unknown message; replicas need the same program");
}

grpc::ByteBuffer ToBytes(const Answer& answer) {
  v1::ReplicateReply message;
  ToMessage(answer.envelope, message.mutable_envelope());
  message.set_code(static_cast<uint32_t>(answer.status.code()));
  message.set_message(std::string(answer.status.message()));
  message.set_held(answer.held);
  message.set_is_empty(answer.is_empty);
  message.set_complete(answer.complete);
  ToMessage(answer.stamp, message.mutable_stamp());
  return tensor::FromProto(message);
}

absl::StatusOr<Answer> AnswerIn(const grpc::ByteBuffer& bytes) {
  v1::ReplicateReply message;
  absl::Status status = tensor::ToProto(bytes, &message);
  if (!status.ok()) return status;
  auto envelope = FromMessage(message.envelope());
  if (!envelope.ok()) return envelope.status();
  constexpr auto kLastCode =
      static_cast<uint32_t>(absl::StatusCode::kUnauthenticated);
  if (message.code() > kLastCode) return Malformed("an unknown status");
  Answer answer;
  answer.envelope = *std::move(envelope);
  answer.status = absl::Status(static_cast<absl::StatusCode>(message.code()),
                               message.message());
  answer.held = message.held();
  answer.is_empty = message.is_empty();
  answer.complete = message.complete();
  answer.stamp = FromMessage(message.stamp());
  return answer;
}

}  // namespace penstock::ps
