#include "transport/fabric/fake/medium.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace penstock {
namespace fabric {
namespace fake {
namespace {

// The distance between the addresses of exposures: an exposure begins at its
// key times this number. Exposures are far from zero and from each other, so
// that a wrong offset never hits another exposure by chance.
constexpr uint64_t kRegionSpacing = uint64_t{1} << 40;

Capabilities CapabilitiesOf(const LinkOptions& options) {
  Capabilities capabilities;
  capabilities.max_packet_bytes = options.max_packet_bytes;
  capabilities.eager_max_bytes = options.eager_max_bytes;
  capabilities.eager_range = options.eager_range;
  capabilities.read_chunk_bytes = options.read_chunk_bytes;
  capabilities.read_chunk_range = options.read_chunk_range;
  capabilities.push_bytes = options.push_bytes;
  capabilities.max_reads = options.max_reads;
  capabilities.can_load = options.can_load;
  capabilities.is_lifeline = options.is_lifeline;
  return capabilities;
}

// Counts a call in `*n`. Returns true if this call is the one to fail.
bool IsNth(int* n) { return *n > 0 && --*n == 0; }

// The owner of loaded bytes.
struct Loan {
  Loan(std::vector<memory::Bytes> pieces,
       std::shared_ptr<std::atomic<int>> loans)
      : pieces(std::move(pieces)), loans(std::move(loans)) {
    ++*this->loans;
  }
  ~Loan() { --*loans; }

  const std::vector<memory::Bytes> pieces;
  const std::shared_ptr<std::atomic<int>> loans;
};

}  // namespace

Medium::Medium(const LinkOptions& options)
    : capabilities_(CapabilitiesOf(options)),
      credits_(options.credits),
      min_destination_bytes_(options.min_destination_bytes),
      can_divert_(options.can_divert),
      now_ns_(options.now_ns) {}

void Medium::Start(Side side, EndpointEvents* events) {
  end(side).events = events;
}

void Medium::Close(Side side) {
  End& closed = end(side);
  closed.events = nullptr;
  if (!closed.cut_off) {
    closed.cause = absl::UnavailableError("the peer closed the fake link");
  }
  closed.cut_off = true;
  closed.queue.clear();
  closed.waiting = 0;
  closed.exposed.clear();
  // Lets earlier packets arrive, but fails later reads.
  End& peer = end(Other(side));
  if (peer.cut_off) return;
  Event broken;
  broken.kind = Event::Kind::kBroken;
  broken.status = closed.cause;
  Queue(Other(side), broken);
  peer.cut_off = true;
  peer.cause = broken.status;
}

void Medium::Queue(Side to, Event event) {
  End& receiver = end(to);
  if (receiver.cut_off) return;
  event.number = next_number_++;
  receiver.queue.push_back(std::move(event));
  receiver.waiting = receiver.queue.size();
}

bool Medium::Send(Side from, absl::Span<const uint8_t> packet) {
  End& sender = end(from);
  // Drops the packet without an error, because the peer's side has broken the
  // link and the sender may not know this yet.
  if (sender.cut_off) return true;
  if (sender.under_way == credits_) {
    sender.wants_credit = true;
    return false;
  }
  ++sender.counters.packets;
  sender.counters.packet_bytes += packet.size();
  if (IsNth(&sender.fail_send) ||
      packet.size() > capabilities_.max_packet_bytes) {
    const absl::Status cause = absl::UnavailableError("a fake send failed");
    sender.failed = true;
    Break(from, cause);
    Break(Other(from), cause);
    return true;
  }
  ++sender.under_way;
  sender.unannounced = true;
  Event event;
  event.packet.assign(packet.begin(), packet.end());
  event.due_ns = line(from).Carry(Now(), packet.size());
  Queue(Other(from), std::move(event));
  return true;
}

absl::StatusOr<Exposure> Medium::Expose(Side owner,
                                        const memory::Payload& payload,
                                        size_t max_parts) {
  End& lender = end(owner);
  if (IsNth(&lender.fail_expose)) {
    return absl::ResourceExhaustedError("a fake exposure failed");
  }
  if (lender.cut_off) return lender.cause;
  Exposure exposure;
  exposure.stable = payload;
  if (capabilities_.can_load) {
    absl::StatusOr<memory::Block> block = memory::AllocateBlock(payload.size());
    if (!block.ok()) return block.status();
    absl::Status copied = payload.CopyFromAnywhereTo(block->data.get());
    if (!copied.ok()) return copied;
    exposure.stable = memory::Payload(block->AsBytes());
  }
  const uint64_t key = next_key_++;
  const uint64_t base = key * kRegionSpacing;
  uint64_t offset = base;
  for (const memory::Bytes& piece : payload.pieces()) {
    if (exposure.region.size() < max_parts) {
      exposure.region.push_back({key, offset, 0});
    }
    exposure.region.back().length += piece.size;
    offset += piece.size;
  }
  lender.exposed[key] = Exposed{base, exposure.stable};
  ++lender.counters.exposures;
  return exposure;
}

std::shared_ptr<const void> Medium::PrepareToRead(
    Side reader, const memory::Destination& into) {
  if (min_destination_bytes_ == 0 || into.size < min_destination_bytes_) {
    return nullptr;
  }
  const std::shared_ptr<std::atomic<int>> count = end(reader).prepared;
  ++*count;
  return std::shared_ptr<const void>(count.get(),
                                     [count](const void*) { --*count; });
}

void Medium::Withdraw(Side owner, const RemoteRegion& region) {
  end(owner).exposed.erase(region[0].key);
}

absl::StatusOr<std::vector<memory::Bytes>> Medium::Find(Side owner,
                                                        const RemotePart& part,
                                                        uint64_t offset,
                                                        uint64_t length) const {
  const End& lender = end(owner);
  if (lender.cut_off) return lender.cause;
  auto it = lender.exposed.find(part.key);
  if (it == lender.exposed.end()) {
    return absl::NotFoundError("nothing is exposed under this key");
  }
  const Exposed& exposed = it->second;
  const uint64_t size = exposed.payload.size();
  const uint64_t begin = part.offset - exposed.base;
  if (part.offset < exposed.base || begin > size ||
      part.length > size - begin || offset > part.length ||
      length > part.length - offset) {
    return absl::OutOfRangeError("not within what is exposed");
  }
  return exposed.payload.Part(begin + offset, length);
}

void Medium::Read(Side reader, const RemotePart& part, uint64_t offset,
                  absl::Span<uint8_t> into, uint64_t cookie) {
  End& end = this->end(reader);
  ++end.counters.reads;
  end.counters.read_bytes += into.size();
  const bool fails = IsNth(&end.fail_read);
  if (end.cut_off) return end.events->OnReadDone(cookie, end.cause);
  Event event;
  event.kind = Event::Kind::kReadDone;
  const uint64_t asked_ns = Now() + line(reader).latency_ns();
  event.due_ns = line(Other(reader)).Carry(asked_ns, into.size());
  event.part = part;
  event.offset = offset;
  event.into = into;
  event.cookie = cookie;
  if (fails) event.status = absl::UnavailableError("a fake read failed");
  Queue(reader, std::move(event));
}

bool Medium::Divert(Side reader, uint64_t cookie) {
  if (!can_divert_) return false;
  for (Event& event : end(reader).queue) {
    if (event.kind == Event::Kind::kReadDone && event.cookie == cookie) {
      event.is_diverted = true;
    }
  }
  return true;
}

absl::Status Medium::Copy(Side reader, const Event& read) const {
  if (!read.status.ok()) return read.status;
  if (read.into.size() > capabilities_.max_read_bytes()) {
    return absl::InvalidArgumentError("a read above max_read_bytes");
  }
  const auto found =
      Find(Other(reader), read.part, read.offset, read.into.size());
  if (!found.ok()) return found.status();
  if (read.is_diverted) return absl::OkStatus();
  uint8_t* out = read.into.data();
  for (const memory::Bytes& part : *found) {
    absl::Status copied = part.CopyTo(out);
    if (!copied.ok()) return copied;
    out += part.size;
  }
  return absl::OkStatus();
}

absl::StatusOr<memory::Payload> Medium::Load(Side reader,
                                             const RemoteRegion& region) {
  if (!capabilities_.can_load) {
    return absl::UnimplementedError("this fake link cannot load");
  }
  End& borrower = end(reader);
  if (borrower.cut_off) return borrower.cause;
  std::vector<memory::Bytes> pieces;
  for (const RemotePart& part : region) {
    const auto found = Find(Other(reader), part, 0, part.length);
    if (!found.ok()) return found.status();
    pieces.insert(pieces.end(), found->begin(), found->end());
  }
  ++borrower.counters.loads;
  const auto loan = std::make_shared<Loan>(pieces, borrower.loans);
  memory::Payload payload;
  for (const memory::Bytes& piece : pieces) {
    payload.Append(memory::Bytes{piece.data, piece.size, loan, piece.device});
  }
  return payload;
}

bool Medium::TakeDoorbellRequest(Side side) {
  const bool unannounced = end(side).unannounced;
  end(side).unannounced = false;
  return unannounced && end(Other(side)).armed;
}

void Medium::RingDoorbell(Side from) {
  if (!capabilities_.is_lifeline) return;
  ++end(from).counters.doorbells;
  Event event;
  event.kind = Event::Kind::kDoorbell;
  if (!end(from).cut_off) Queue(Other(from), std::move(event));
}

void Medium::Break(Side side, const absl::Status& cause) {
  End& broken = end(side);
  if (broken.cut_off) return;
  auto lost = std::remove_if(
      broken.queue.begin(), broken.queue.end(),
      [](const Event& event) { return event.kind != Event::Kind::kReadDone; });
  broken.queue.erase(lost, broken.queue.end());
  for (Event& read : broken.queue) {
    read.status = cause;
    read.due_ns = 0;
  }
  Event event;
  event.kind = Event::Kind::kBroken;
  event.status = cause;
  Queue(side, std::move(event));
  broken.cut_off = true;
  broken.cause = cause;
  broken.exposed.clear();
}

void Medium::SetReadOrder(Side reader, ReadOrder order) {
  end(reader).read_order = std::move(order);
}

uint64_t Medium::OldestFor(Side to) const {
  const End& receiver = end(to);
  if (receiver.events == nullptr || receiver.queue.empty()) return 0;
  if (receiver.queue.front().due_ns > Now()) return 0;
  return receiver.queue.front().number;
}

uint64_t Medium::DueFor(Side to) const {
  const End& receiver = end(to);
  return receiver.queue.empty() ? UINT64_MAX : receiver.queue.front().due_ns;
}

Medium::Event Medium::TakeNext(End* to) {
  auto next = to->queue.begin();
  if (next->kind == Event::Kind::kReadDone && to->read_order != nullptr) {
    std::vector<std::deque<Event>::iterator> reads;
    for (auto it = to->queue.begin(); it != to->queue.end(); ++it) {
      if (it->kind == Event::Kind::kReadDone) reads.push_back(it);
    }
    next = reads[to->read_order(reads.size()) % reads.size()];
  }
  Event event = std::move(*next);
  to->queue.erase(next);
  to->waiting = to->queue.size();
  return event;
}

void Medium::ReturnCredit(Side sender) {
  End& to = end(sender);
  --to.under_way;
  if (!to.wants_credit) return;
  to.wants_credit = false;
  end(Other(sender)).unannounced = true;
  Event event;
  event.kind = Event::Kind::kWritable;
  Queue(sender, std::move(event));
}

bool Medium::Deliver(Side to) {
  if (OldestFor(to) == 0) return false;
  End& receiver = end(to);
  EndpointEvents* const events = receiver.events;
  const Event event = TakeNext(&receiver);
  switch (event.kind) {
    case Event::Kind::kPacket:
      ReturnCredit(Other(to));
      events->OnPacket(absl::MakeConstSpan(
          reinterpret_cast<const uint8_t*>(event.packet.data()),
          event.packet.size()));
      break;
    case Event::Kind::kWritable:
      events->OnWritable();
      break;
    case Event::Kind::kReadDone:
      events->OnReadDone(event.cookie, Copy(to, event));
      break;
    case Event::Kind::kDoorbell:
      events->OnDoorbell();
      break;
    case Event::Kind::kBroken:
      receiver.failed = false;
      events->OnBroken(event.status);
      break;
  }
  return true;
}

}  // namespace fake
}  // namespace fabric
}  // namespace penstock
