#include "transport/fabric/tcp/endpoint.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "transport/wire/frame.h"

namespace penstock {
namespace fabric {
namespace tcp {
namespace {

// The size in bytes from which a packet is a separate piece of a write.
constexpr size_t kMinPieceBytes = 4 * 1024;
// The smallest chunk, in bytes. For smaller chunks, the two unit headers would
// be a noticeable part of the bytes.
constexpr size_t kLeastChunkBytes = 16 * 1024;

static_assert(kMaxPacketBytes >= wire::kMaxFrameBytes,
              "every fabric takes a whole frame");

Capabilities TcpCapabilities() {
  Capabilities capabilities;
  capabilities.max_packet_bytes = kMaxPacketBytes;
  // Never adapts this limit. An announced payload is pushed right after its
  // announcement, which costs a header instead of two copies. But releasing the
  // payload costs another write and another wake-up. Measured, together they
  // cost more than copying two frames, and less than copying three.
  capabilities.eager_max_bytes = 2 * wire::kMaxFramePayload;
  capabilities.read_chunk_bytes = kChunkBytes;
  capabilities.read_chunk_range = {kLeastChunkBytes, kMaxReadBytes};
  capabilities.push_bytes = kChunkBytes;
  capabilities.max_reads = 4;
  capabilities.is_lifeline = true;
  return capabilities;
}

absl::Span<const uint8_t> AsSpan(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Returns true for units that carry the bytes of a read.
bool IsReadData(UnitType type) {
  return type == UnitType::kReadData || type == UnitType::kPush;
}

absl::Status UnreadableMessage() {
  return absl::NotFoundError("the peer withdrew the message");
}

}  // namespace

constexpr size_t Endpoint::kMaxWaitingReads;

Endpoint::Endpoint(ByteStream* stream, size_t max_waiting_reads)
    : stream_(stream),
      max_waiting_reads_(max_waiting_reads),
      capabilities_(TcpCapabilities()) {}

bool Endpoint::Send(absl::Span<const uint8_t> packet) {
  if (!queue_.HasCredit()) return false;
  queue_.Add(
      UnitHeader{static_cast<uint32_t>(packet.size()), UnitType::kPacket, 0},
      packet);
  WriteQueued();
  return true;
}

bool Endpoint::SendOwned(std::string* packet) {
  // Copies short packets into a shared piece, because a separate piece would
  // cost more than a copy.
  if (packet->size() < kMinPieceBytes) return Send(AsSpan(*packet));
  if (!queue_.HasCredit()) return false;
  queue_.Add(
      UnitHeader{static_cast<uint32_t>(packet->size()), UnitType::kPacket, 0},
      {});
  auto owner = std::make_shared<const std::string>(std::move(*packet));
  queue_.AddBytes(memory::Bytes{AsSpan(*owner).data(), owner->size(), owner});
  WriteQueued();
  return true;
}

absl::StatusOr<Exposure> Endpoint::Expose(const memory::Payload& payload,
                                          size_t) {
  return Keep(next_key_++, payload);
}

Exposure Endpoint::Keep(uint64_t key, const memory::Payload& payload) {
  Exposure exposure;
  exposure.region.push_back({key, 0, payload.size()});
  exposure.stable = payload;
  exposed_[key] = payload;
  return exposure;
}

void Endpoint::Withdraw(const RemoteRegion& region) {
  exposed_.erase(region[0].key);
}

void Endpoint::Read(const RemotePart& part, uint64_t offset,
                    absl::Span<uint8_t> into, uint64_t cookie) {
  if (broken_) {
    events_->OnReadDone(cookie, absl::UnavailableError("connection closed"));
    return;
  }
  // Compares without adding the numbers. The peer chose them, and an
  // overflowing sum must not reach another part.
  if (offset > part.length || into.size() > part.length - offset ||
      offset > UINT64_MAX - part.offset) {
    events_->OnReadDone(cookie,
                        absl::OutOfRangeError("read beyond the region"));
    return;
  }
  if (reads_.Expect(part, offset, {into, cookie})) return;
  const uint64_t read = reads_.Request({into, cookie});
  std::string body;
  AppendReadRequest(ReadRequest{part.key, part.offset + offset,
                                static_cast<uint32_t>(into.size())},
                    &body);
  queue_.Add(UnitHeader{kReadBodyBytes, UnitType::kRead, read}, AsSpan(body));
  WriteQueued();
}

void Endpoint::RingDoorbell() {
  if (doorbell_queued_) return;
  doorbell_queued_ = true;
  queue_.Add(UnitHeader{0, UnitType::kDoorbell, 0}, {});
  WriteQueued();
}

void Endpoint::EndBatch() {
  if (--batches_ == 0) WriteQueued();
}

void Endpoint::WriteQueued(bool may_wait) {
  if (writing_ || broken_ || batches_ > 0 || !HasOutput()) return;
  const bool is_urgent =
      doorbell_queued_ || !to_serve_.empty() || !to_push_.empty();
  if (may_wait && !is_urgent && stream_->Holds(queue_.bytes(), packets_))
    return;
  ServePushes();
  ServeReads();
  if (queue_.empty()) return;
  writing_ = true;
  doorbell_queued_ = false;
  stream_->Write(queue_.Take());
}

void Endpoint::OnWritten() {
  writing_ = false;
  WriteQueued(/*may_wait=*/false);  // the packets have waited already
  if (queue_.TakeCredit()) events_->OnWritable();
}

void Endpoint::OnBytes(absl::Span<const uint8_t> bytes) {
  BeginBatch();  // of answers, and of the reads that they cause
  while (!bytes.empty() && !broken_) {
    bytes.remove_prefix(in_body_ ? TakeBody(bytes) : TakeHeader(bytes));
  }
  EndBatch();
}

size_t Endpoint::TakeHeader(absl::Span<const uint8_t> bytes) {
  const size_t take =
      std::min(bytes.size(), kUnitHeaderBytes - header_bytes_.size());
  header_bytes_.append(reinterpret_cast<const char*>(bytes.data()), take);
  if (header_bytes_.size() < kUnitHeaderBytes) return take;
  absl::StatusOr<UnitHeader> unit =
      ParseUnitHeader(AsSpan(header_bytes_).data());
  header_bytes_.clear();
  if (!unit.ok()) {
    Break(unit.status());
    return take;
  }
  unit_ = *unit;
  body_received_ = 0;
  body_.clear();
  in_body_ = unit_.length > 0;
  if (unit_.type == UnitType::kPush || unit_.type == UnitType::kPushVoid) {
    absl::Status push = reads_.BeginPush(unit_);
    if (!push.ok()) {
      Break(push);
      return take;
    }
  }
  if (unit_.type == UnitType::kPacket) body_.reserve(unit_.length);
  if (!in_body_) OnUnit({});
  return take;
}

size_t Endpoint::TakeBody(absl::Span<const uint8_t> bytes) {
  const size_t take =
      std::min<size_t>(bytes.size(), unit_.length - body_received_);
  if (IsReadData(unit_.type)) return TakeReadData(bytes.first(take));
  if (take == unit_.length) {  // whole: no need to collect it
    in_body_ = false;
    OnUnit(bytes.first(take));
    return take;
  }
  body_.append(reinterpret_cast<const char*>(bytes.data()), take);
  body_received_ += take;
  if (body_received_ == unit_.length) {
    in_body_ = false;
    OnUnit(AsSpan(body_));
  }
  return take;
}

size_t Endpoint::TakeReadData(absl::Span<const uint8_t> bytes) {
  const ReadTable::Read* const read = reads_.Find(unit_);
  if (unit_.type == UnitType::kReadData &&
      (read == nullptr || read->into.size() != unit_.length)) {
    Break(absl::InvalidArgumentError("tcp: data without a request"));
    return bytes.size();
  }
  // Drops a push for which nobody waits, and the bytes of a diverted read.
  if (read != nullptr && read->into.data() != nullptr) {
    memcpy(read->into.data() + body_received_, bytes.data(), bytes.size());
  }
  CountReadData(bytes.size());
  return bytes.size();
}

void Endpoint::CountReadData(size_t size) {
  body_received_ += size;
  if (body_received_ < unit_.length) return;
  in_body_ = false;
  FinishRead(absl::OkStatus());
}

absl::Span<uint8_t> Endpoint::place() {
  if (broken_ || !in_body_ || !IsReadData(unit_.type)) return {};
  const ReadTable::Read* const read = reads_.Find(unit_);
  if (read == nullptr || read->into.data() == nullptr ||
      read->into.size() != unit_.length) {
    return {};
  }
  return read->into.subspan(body_received_);
}

void Endpoint::OnPlaced(size_t size) {
  BeginBatch();  // of the reads that follow
  CountReadData(size);
  EndBatch();
}

void Endpoint::OnUnit(absl::Span<const uint8_t> body) {
  switch (unit_.type) {
    case UnitType::kPacket:
      ++packets_;
      return events_->OnPacket(body);
    case UnitType::kDoorbell:
      return events_->OnDoorbell();
    case UnitType::kRead:
      return AcceptRead(unit_.cookie, ParseReadRequest(body.data()));
    case UnitType::kReadError:
    case UnitType::kPushVoid:
      return FinishRead(UnreadableMessage());
    case UnitType::kReadData:
    case UnitType::kPush:
      return;  // consumed as it arrived
  }
}

void Endpoint::AcceptRead(uint64_t cookie, const ReadRequest& request) {
  if (request.length == 0 || request.length > kMaxReadBytes) {
    return Break(absl::InvalidArgumentError("tcp: read of a forbidden size"));
  }
  if (to_serve_.size() >= max_waiting_reads_) {
    return Break(
        absl::ResourceExhaustedError("tcp: too many concurrent reads"));
  }
  to_serve_.push_back(ServedRead{cookie, request});
  WriteQueued();
}

void Endpoint::ServeReads() {
  const size_t end = queue_.bytes() + kServedBytesPerWrite;
  for (; !to_serve_.empty() && queue_.bytes() < end; to_serve_.pop_front()) {
    const uint64_t cookie = to_serve_.front().cookie;
    const ReadRequest& request = to_serve_.front().request;
    auto it = exposed_.find(request.key);
    if (it == exposed_.end() || request.offset > it->second.size() ||
        request.length > it->second.size() - request.offset ||
        !AddPart(UnitHeader{request.length, UnitType::kReadData, cookie},
                 it->second, request.offset)) {
      queue_.Add(UnitHeader{0, UnitType::kReadError, cookie}, {});
    }
  }
}

// Adds the bytes of a part. Copies device memory to the host piece by piece, so
// that the device works while the previous piece is being sent.
bool Endpoint::AddPart(const UnitHeader& header, const memory::Payload& payload,
                       size_t offset) {
  std::vector<memory::Bytes> parts = payload.Part(offset, header.length);
  for (memory::Bytes& part : parts) {
    absl::StatusOr<memory::Bytes> on_host = memory::ToHost(std::move(part));
    if (!on_host.ok()) return false;
    part = *std::move(on_host);
  }
  queue_.Add(header, {});
  for (memory::Bytes& part : parts) queue_.AddBytes(std::move(part));
  return true;
}

void Endpoint::FinishRead(const absl::Status& status) {
  const absl::optional<uint64_t> cookie = reads_.Take(unit_);
  if (cookie.has_value()) return events_->OnReadDone(*cookie, status);
  if (unit_.type == UnitType::kPush || unit_.type == UnitType::kPushVoid) {
    return;
  }
  Break(absl::InvalidArgumentError("tcp: an answer without a read"));
}

void Endpoint::Break(const absl::Status& cause) {
  if (broken_) return;
  broken_ = true;
  queue_.Close();
  exposed_.clear();
  to_serve_.clear();
  to_push_.clear();
  for (uint64_t cookie : reads_.TakeAll()) events_->OnReadDone(cookie, cause);
  events_->OnBroken(cause);
}

}  // namespace tcp
}  // namespace fabric
}  // namespace penstock
