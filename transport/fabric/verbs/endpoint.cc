#include "transport/fabric/verbs/endpoint.h"

#include <algorithm>
#include <cassert>
#include <cstring>
#include <utility>

#include "absl/memory/memory.h"
#include "transport/fabric/verbs/status.h"
#include "transport/metrics/registry.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kMaxPacketBytes = kBufferBytes - kPacketHeaderBytes;
static_assert(kMaxPacketBytes >= wire::kMaxFrameBytes,
              "every fabric takes a whole frame");
// Limits the packets that wait for the device: as many as the peer accepts.
constexpr uint32_t kSendBuffers = 16;
// The number of packets for each requested completion. With 4, three of four
// completions are saved.
constexpr uint32_t kSignalEvery = 4;
// Limits the completions that one Poll() handles.
constexpr int kPollBudget = 32;
// The eager limit: one packet. Above this size, two copies through buffers cost
// more than the announcement, unless the link's latency is high.
constexpr size_t kEagerMaxBytes = wire::kMaxFramePayload;
// The range of the eager limit. Below the lower bound, copying is not the main
// cost of a message. The upper bound fills half of the peer's buffers for
// packets.
constexpr SizeRange kEagerRange = {wire::kMaxFramePayload / 4,
                                   8 * wire::kMaxFramePayload};
// The initial chunk size. Large enough to keep a fast link busy while the next
// chunk is being requested.
constexpr size_t kReadChunkBytes = 128 * 1024;
// The range of the chunk size. Below the lower bound, requests and completions
// are a noticeable part of a chunk's cost. The upper bound reads most messages
// in one chunk.
constexpr SizeRange kReadChunkRange = {16 * 1024, 1024 * 1024};
Capabilities CapabilitiesOf(int max_reads) {
  Capabilities capabilities;
  capabilities.max_packet_bytes = kMaxPacketBytes;
  capabilities.eager_max_bytes = kEagerMaxBytes;
  capabilities.eager_range = kEagerRange;
  capabilities.read_chunk_bytes = kReadChunkBytes;
  capabilities.read_chunk_range = kReadChunkRange;
  capabilities.max_reads = max_reads;
  return capabilities;
}

// Returns the number of reads that the device may have in flight: as many as
// this side starts and the peer serves.
int MaxReads(const CmConnection& connection) {
  return std::min(connection.terms().reads, connection.peer().reads);
}

uint64_t AddressOf(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> VerbsEndpoint::Create(
    std::shared_ptr<CmConnection> connection) {
  absl::Status permitted = connection->PermitReads();
  if (!permitted.ok()) return permitted;
  absl::StatusOr<std::shared_ptr<PoolLease>> buffers =
      connection->domain()->private_pool()->Allocate(kSendBuffers *
                                                     kBufferBytes);
  if (!buffers.ok()) return buffers.status();
  return std::unique_ptr<Endpoint>(
      new VerbsEndpoint(std::move(connection), *std::move(buffers)));
}

VerbsEndpoint::VerbsEndpoint(std::shared_ptr<CmConnection> connection,
                             std::shared_ptr<PoolLease> send_buffers)
    : connection_(std::move(connection)),
      capabilities_(CapabilitiesOf(MaxReads(*connection_))),
      queue_(connection_->api(), kSendRequests, kSignalEvery),
      credits_(connection_->terms().receives, connection_->peer().receives),
      exposer_(connection_.get(), &queue_),
      send_buffers_(std::move(send_buffers)),
      max_reads_(capabilities_.max_reads) {
  for (uint32_t i = 0; i < kSendBuffers; ++i) free_buffers_.push_back(i);
}

VerbsEndpoint::~VerbsEndpoint() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  exposer_.End();
  // Destroys the queue pair now, because the connection may live for a while:
  // the event loop uses it.
  connection_->DestroyQueuePair();
}

bool VerbsEndpoint::MaySend() const {
  return credits_.MaySend() && !free_buffers_.empty() && !queue_.full();
}

bool VerbsEndpoint::Send(absl::Span<const uint8_t> packet) {
  assert(packet.size() <= kMaxPacketBytes);
  if (connection_->is_lost() || broken_) return false;
  if (!MaySend()) {
    wants_to_send_ = true;
    return false;
  }
  AddPacket(PacketHeader::Kind::kPacket, packet, SendQueue::Signal::kWhenDue);
  if (batches_ == 0) PostAdded();
  return true;
}

void VerbsEndpoint::AddPacket(PacketHeader::Kind kind,
                              absl::Span<const uint8_t> packet,
                              SendQueue::Signal signal) {
  const uint32_t buffer = free_buffers_.back();
  free_buffers_.pop_back();
  uint8_t* const out = send_buffers_->data() + buffer * kBufferBytes;
  PacketHeader header;
  header.kind = kind;
  header.credits = credits_.TakeForSend();
  EncodeHeader(header, out);
  if (!packet.empty()) {
    std::memcpy(out + kPacketHeaderBytes, packet.data(), packet.size());
  }
  ibv_send_wr* request = queue_.Add(SendQueue::Kind::kPacket, buffer, signal);
  request->opcode = IBV_WR_SEND;
  request->sg_list->addr = AddressOf(out);
  request->sg_list->length =
      static_cast<uint32_t>(kPacketHeaderBytes + packet.size());
  request->sg_list->lkey = send_buffers_->lkey();
  if (request->sg_list->length <= connection_->inline_bytes()) {
    request->send_flags |= IBV_SEND_INLINE;
  }
}

void VerbsEndpoint::EndBatch() {
  if (--batches_ == 0) PostAdded();
}

void VerbsEndpoint::PostAdded() {
  if (!broken_) connection_->Post(&queue_);
}

absl::StatusOr<Exposure> VerbsEndpoint::Expose(const memory::Payload& payload,
                                               size_t max_parts) {
  if (broken_) return absl::UnavailableError("the connection is lost");
  return exposer_.Expose(payload, max_parts);
}

void VerbsEndpoint::Withdraw(const RemoteRegion& region) {
  exposer_.Withdraw(region);
  if (batches_ == 0) PostAdded();
}

absl::StatusOr<memory::Block> VerbsEndpoint::AllocateForRead(size_t size) {
  return connection_->domain()->AllocateForRead(size,
                                                connection_->read_quota());
}

void VerbsEndpoint::Read(const RemotePart& part, uint64_t offset,
                         absl::Span<uint8_t> into, uint64_t cookie) {
  if (broken_) {
    return events_->OnReadDone(
        cookie, absl::UnavailableError("the connection is lost"));
  }
  // Compares without adding the numbers, because the peer chose them and their
  // sum could overflow.
  if (offset > part.length || into.size() > part.length - offset ||
      offset > UINT64_MAX - part.offset || part.key > UINT32_MAX) {
    return events_->OnReadDone(cookie,
                               absl::OutOfRangeError("read beyond the region"));
  }
  PendingRead read;
  read.address = part.offset + offset;
  read.rkey = static_cast<uint32_t>(part.key);
  read.into = into;
  read.cookie = cookie;
  absl::StatusOr<Registered> target = connection_->domain()->GetForRead(
      memory::Bytes{into.data(), into.size(), nullptr}, &read.gpu);
  if (!target.ok()) return events_->OnReadDone(cookie, target.status());
  read.registered = *std::move(target);
  waiting_reads_.push_back(std::move(read));
  StartReads();
  if (batches_ == 0) PostAdded();
}

void VerbsEndpoint::StartReads() {
  while (!waiting_reads_.empty() && !queue_.full() &&
         reads_.size() < static_cast<size_t>(max_reads_)) {
    reads_.push_back(std::move(waiting_reads_.front()));
    waiting_reads_.pop_front();
    const PendingRead& read = reads_.back();
    ibv_send_wr* request = queue_.Add(SendQueue::Kind::kRead, read.cookie,
                                      SendQueue::Signal::kNow);
    request->opcode = IBV_WR_RDMA_READ;
    request->wr.rdma.remote_addr = read.address;
    request->wr.rdma.rkey = read.rkey;
    request->sg_list->addr = AddressOf(read.into.data());
    request->sg_list->length = static_cast<uint32_t>(read.into.size());
    request->sg_list->lkey = read.registered.region->lkey;
  }
}

// Adds a probe: a packet without content. A read of zero bytes would need no
// receive, but Soft-RoCE breaks the peer's queue pair when it repeats such a
// read.
void VerbsEndpoint::AddProbe() {
  if (queue_.under_way() == 0 || queue_.last_is_signaled()) return;
  AddPacket(PacketHeader::Kind::kCredits, {}, SendQueue::Signal::kNow);
}

// Adds a signaled probe if the supervisor wants one. If nothing can be sent and
// no completion is due, adds nothing, and the supervisor's request stays. In
// this case the peer may simply grant no credits, which does not prove that the
// device hangs.
void VerbsEndpoint::ProbeIfDue() {
  if (!MaySend() && !queue_.awaits_completion()) return;
  if (connection_->TakeProbeRequest() && MaySend()) AddProbe();
}

// Returns false for a lost connection until Poll() has reported the loss,
// because the owner still has to send the lost packets elsewhere.
bool VerbsEndpoint::IsDrained() {
  if (broken_ || queue_.under_way() == 0) return true;
  if (connection_->is_lost()) return false;
  if (MaySend()) AddProbe();
  PostAdded();
  return false;
}

bool VerbsEndpoint::Poll() {
  if (events_ == nullptr || broken_) return false;
  bool destroyed = false;
  destroyed_ = &destroyed;
  // Checks this before taking completions: packets that the peer sent before
  // its end must be delivered before OnBroken().
  const bool lost = connection_->is_lost();
  ibv_wc completions[kPollBudget];
  const int count = connection_->completions()->Take(completions, kPollBudget);
  ++batches_;
  for (int i = 0; i < count; ++i) {
    Handle(completions[i]);
    if (destroyed) return true;
    if (broken_) break;
  }
  GrantIfDue();
  exposer_.Invalidate();
  StartReads();
  ProbeIfDue();
  if (wants_to_send_ && MaySend() && !broken_) {
    wants_to_send_ = false;
    events_->OnWritable();
    if (destroyed) return true;
  }
  EndBatch();
  destroyed_ = nullptr;
  if (broken_) return true;
  if (count < 0) {
    Break(absl::InternalError("the device's completions cannot be read"));
  } else if (lost && count == 0) {
    Break(connection_->cause());
  }
  return count != 0 || lost;
}

void VerbsEndpoint::Handle(const ibv_wc& completion) {
  if (completion.status != IBV_WC_SUCCESS) {
    // True for a flushed request. Flushing is an effect of an earlier failure,
    // whose cause may be known already.
    const bool flushed = completion.status == IBV_WC_WR_FLUSH_ERR;
    if (flushed && connection_->is_lost()) return Break(connection_->cause());
    metrics::Registry::Get()->Count(metrics::Metric::kCompletionErrors,
                                    {CompletionLabel(completion.status)});
    return Break(CompletionStatus(completion.status));
  }
  if ((completion.opcode & IBV_WC_RECV) != 0) return OnReceived(completion);
  OnEnded(completion.wr_id);
}

void VerbsEndpoint::OnReceived(const ibv_wc& completion) {
  const absl::Span<const uint8_t> bytes =
      connection_->receives()->Buffer(completion.wr_id, completion.byte_len);
  absl::StatusOr<PacketHeader> header = ParseHeader(bytes);
  if (!header.ok()) return Break(header.status());
  absl::Status granted = credits_.OnGranted(header->credits);
  if (!granted.ok()) return Break(granted);
  if (header->kind == PacketHeader::Kind::kPacket) {
    bool* const destroyed = destroyed_;
    events_->OnPacket(bytes.subspan(kPacketHeaderBytes));
    if (*destroyed || broken_) return;
  }
  absl::Status posted = connection_->receives()->Post(completion.wr_id);
  if (!posted.ok()) return Break(posted);
  credits_.OnReceived();
}

void VerbsEndpoint::OnEnded(uint64_t wr_id) {
  bool* const destroyed = destroyed_;
  SendQueue::Done done;
  while (queue_.Pop(wr_id, &done)) {
    switch (done.kind) {
      case SendQueue::Kind::kPacket:
        free_buffers_.push_back(static_cast<uint32_t>(done.cookie));
        break;
      case SendQueue::Kind::kRead:
        EndOldestRead();
        if (*destroyed || broken_) return;
        break;
      case SendQueue::Kind::kInvalidation:
        exposer_.OnInvalidated();
        break;
      case SendQueue::Kind::kBinding:
        break;
    }
  }
}

// Ends the oldest read, and reports its end. May destroy this endpoint.
void VerbsEndpoint::EndOldestRead() {
  const PendingRead& read = reads_.front();
  const uint64_t cookie = read.cookie;
  absl::Status status;
  if (read.gpu != nullptr) status = read.gpu->FlushWrites(read.into);
  reads_.pop_front();
  events_->OnReadDone(cookie, status);
}

void VerbsEndpoint::GrantIfDue() {
  if (!broken_ && credits_.MustGrant() && MaySend()) {
    AddPacket(PacketHeader::Kind::kCredits, {}, SendQueue::Signal::kWhenDue);
  }
}

void VerbsEndpoint::Break(absl::Status cause) {
  // Keeps the connection until the memory of the reads is released, even if an
  // event destroys this endpoint.
  const std::shared_ptr<CmConnection> connection = connection_;
  bool destroyed = false;
  bool* const outer = std::exchange(destroyed_, &destroyed);
  broken_ = true;  // a read that an event starts now ends immediately
  exposer_.End();
  // Destroys the queue pair before the reads end, so that nothing writes to
  // their destinations afterwards.
  connection_->DestroyQueuePair();
  std::deque<PendingRead> reads = std::move(reads_);
  for (PendingRead& read : waiting_reads_) reads.push_back(std::move(read));
  reads_.clear();
  waiting_reads_.clear();
  for (const PendingRead& read : reads) {
    events_->OnReadDone(read.cookie, cause);
    if (destroyed) {
      if (outer != nullptr) *outer = true;
      return;
    }
  }
  destroyed_ = outer;
  events_->OnBroken(cause);
}

bool VerbsEndpoint::HasInput() const {
  if (broken_.load(std::memory_order_relaxed)) return false;
  return connection_->is_lost() || connection_->completions()->HasInput();
}

void VerbsEndpoint::SetArmed(bool armed) {
  connection_->completions()->SetArmed(armed);
}

std::vector<int> VerbsEndpoint::wakeup_fds() const {
  return connection_->completions()->wakeup_fds();
}

void VerbsEndpoint::ClearWakeup() { connection_->completions()->ClearWakeup(); }

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
