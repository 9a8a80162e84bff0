#include "transport/fabric/shm/endpoint.h"

#include <cassert>
#include <cstring>
#include <utility>

#include "absl/container/fixed_array.h"
#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "transport/base/steady_time.h"
#include "transport/fabric/gather.h"
#include "transport/fabric/shm/lent_segment.h"
#include "transport/fabric/shm/region_key.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// Limit the packets of one Poll(), and the bytes of loans that their events
// read. Afterwards the program handles the messages, and the poller checks
// other connections.
constexpr int kPollBudget = 64;
constexpr size_t kPollBytes = 256 * 1024;
// The eager limit, in bytes. Above this size, announcing a message and copying
// it once into the arena costs less than two copies through the ring.
constexpr size_t kEagerMaxBytes = 8 * 1024;
// The range of the eager limit if messages are used without a copy. Sides that
// copy do not adapt the limit, because their measurement would mistake the
// peer's copying for waiting.
constexpr SizeRange kEagerRangeOfLoads = {4 * 1024, wire::kMaxFramePayload};
// The size of the chunks of a read, in bytes. Reads are plain copies.
// Concurrent reads gain nothing, and chunks only give other connections their
// turn.
constexpr size_t kReadChunkBytes = 1024 * 1024;

Capabilities MakeCapabilities(bool can_load) {
  Capabilities capabilities;
  capabilities.max_packet_bytes = kMaxPacketBytes;
  capabilities.eager_max_bytes = kEagerMaxBytes;
  if (can_load) capabilities.eager_range = kEagerRangeOfLoads;
  capabilities.read_chunk_bytes = kReadChunkBytes;
  capabilities.max_reads = 1;
  capabilities.can_load = can_load;
  return capabilities;
}

// The owner of loaded bytes. Keeps the link alive, even in the destructor.
struct LoadedRegion {
  LoadedRegion(std::shared_ptr<ReadingShare> reading, size_t parts,
               uint64_t key)
      : reading(std::move(reading)), loans(parts), key(key) {}
  ~LoadedRegion() {
    Link* link = reading->link();
    if (is_whole && !link->IsForeign()) link->borrower()->GiveBack(key);
  }

  const std::shared_ptr<ReadingShare> reading;
  // References that keep device memory open and segments mapped, one for each
  // part.
  absl::InlinedVector<std::shared_ptr<const void>, 1> devices;
  absl::FixedArray<LentSegment::Loan, 1> loans;
  const uint64_t key;
  bool is_whole = false;  // if false, the caller releases the region
};

// Returns a random odd number. If the flag in the page is corrupted, it
// therefore hardly ever equals the value of a later arming, at which the peer
// would not ring.
uint32_t FirstArming() {
  return static_cast<uint32_t>(absl::ToUnixNanos(base::SteadyNow())) | 1;
}

// Returns true if all parts are of one loan, and so end together.
bool IsOneLoan(const RemoteRegion& region) {
  for (const RemotePart& part : region) {
    if (LoanOfKey(part.key) != LoanOfKey(region[0].key)) return false;
  }
  return true;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Endpoint>> ShmEndpoint::Create(
    PeerSocket socket, Segment control, PeerSegment peer_control,
    Sharing sharing) {
  absl::StatusOr<std::shared_ptr<Link>> link =
      Link::Create(std::move(socket), std::move(control),
                   std::move(peer_control), std::move(sharing));
  if (!link.ok()) return link.status();
  return std::unique_ptr<Endpoint>(new ShmEndpoint(*link));
}

ShmEndpoint::ShmEndpoint(const std::shared_ptr<Link>& link)
    : link_(link),
      reading_(link->StartReading()),
      sender_(link->own_page(), link->peer_page()),
      receiver_(link->own_page(), link->peer_page(), link->peer_ring_bytes()),
      armings_(FirstArming()) {}

ShmEndpoint::~ShmEndpoint() {
  if (destroyed_ != nullptr) *destroyed_ = true;
  link_->Close();
}

const Capabilities& ShmEndpoint::capabilities() const {
  static const Capabilities loads = MakeCapabilities(/*can_load=*/true);
  static const Capabilities copies = MakeCapabilities(/*can_load=*/false);
  return link_->sharing().copies ? copies : loads;
}

std::string ShmEndpoint::Describe() const {
  const Sharing& sharing = link_->sharing();
  const std::string pages = sharing.arena->Describe();
  return absl::StrCat("ring ", link_->own_page()->ring_bytes / 1024, " KiB",
                      sharing.copies ? ", copied: " : "", sharing.reason,
                      pages.empty() ? "" : ", ", pages, DescribeDevices());
}

std::string ShmEndpoint::DescribeDevices() const {
  if (link_->sharing().devices == nullptr) return "";
  const std::string why = link_->borrower()->WhyDeclined();
  return absl::StrCat(", ", link_->device_lender()->Describe(),
                      why.empty() ? "" : ", the peer's copied: ", why);
}

void ShmEndpoint::Start(EndpointEvents* events) { events_ = events; }

bool ShmEndpoint::Send(absl::Span<const uint8_t> packet) {
  assert(packet.size() <= kMaxPacketBytes);
  if (failed_.load(std::memory_order_relaxed)) return false;
  if (packet.size() > kMaxPacketBytes) {
    Fail(absl::InternalError("a packet above max_packet_bytes was sent"));
    return false;
  }
  switch (sender_.Send(packet)) {
    case RingSender::Result::kSent:
      unannounced_ = true;
      return true;
    case RingSender::Result::kFull:
      // A sleeping peer has read everything. A full ring therefore proves that
      // the peer's tail is invalid. The peer notices this when it wakes.
      unannounced_ = true;
      return false;
    case RingSender::Result::kNoMemory:
      Fail(absl::ResourceExhaustedError(
          "no memory for a larger ring: raise the memory limit"));
      return false;
    case RingSender::Result::kBroken:
      break;
  }
  Fail(absl::DataLossError("the peer claims to have read more than was sent"));
  return false;
}

absl::StatusOr<Exposure> ShmEndpoint::Expose(const memory::Payload& payload,
                                             size_t max_parts) {
  const bool copies = link_->sharing().copies;
  absl::StatusOr<Exposure> exposure =
      link_->lender()->Expose(payload, copies ? 1 : max_parts);
  if (absl::IsDataLoss(exposure.status())) Fail(exposure.status());
  if (exposure.ok() || link_->device_lender()->count() > 0) {
    link_->WatchLoans();
  }
  if (!exposure.ok() || !copies) return exposure;
  // Splits the part for a peer that wants the pieces in separate places.
  const RemotePart all = exposure->region[0];
  exposure->region.clear();
  const Stretch copied{/*in_place=*/false, 0, payload.pieces().size(),
                       payload.size()};
  AppendParts(all, PartsOf(payload, copied, kMinPartBytes, max_parts),
              &exposure->region);
  return exposure;
}

void ShmEndpoint::Withdraw(const RemoteRegion& region) {
  if (link_->sharing().copies) link_->lender()->End(region[0].key);
}

void ShmEndpoint::Read(const RemotePart& part, uint64_t offset,
                       absl::Span<uint8_t> into, uint64_t cookie) {
  events_->OnReadDone(cookie, CopyPart(part, offset, into));
}

absl::Status ShmEndpoint::CopyPart(const RemotePart& part, uint64_t offset,
                                   absl::Span<uint8_t> into) {
  if (offset > part.length || into.size() > part.length - offset) {
    return absl::OutOfRangeError("read beyond the region");
  }
  absl::StatusOr<Borrower::Borrowed> borrowed = link_->borrower()->Find(part);
  if (!borrowed.ok()) return borrowed.status();
  read_bytes_ += into.size();
  if (into.empty()) return absl::OkStatus();
  const auto from = borrowed->bytes.subspan(offset, into.size());
  if (borrowed->device != nullptr) {
    return borrowed->device->CopyToHost(from, into.data());
  }
  std::memcpy(into.data(), from.data(), from.size());
  return absl::OkStatus();
}

absl::StatusOr<memory::Payload> ShmEndpoint::Load(const RemoteRegion& region) {
  if (link_->sharing().copies) {
    return absl::FailedPreconditionError(
        "another user could change the message while it is used");
  }
  if (!IsOneLoan(region)) {
    return absl::InvalidArgumentError("the peer's region is of several loans");
  }
  const auto owner =
      std::make_shared<LoadedRegion>(reading_, region.size(), region[0].key);
  memory::Payload payload;
  for (size_t i = 0; i < region.size(); ++i) {
    const RemotePart& part = region[i];
    absl::StatusOr<Borrower::Borrowed> borrowed = link_->borrower()->Find(part);
    if (!borrowed.ok()) return borrowed.status();
    read_bytes_ += part.length;
    const absl::Span<const uint8_t> bytes = borrowed->bytes;
    if (borrowed->segment != nullptr) {
      owner->loans[i].Begin(std::move(borrowed->segment), part.offset,
                            part.length);
    } else {
      owner->devices.push_back(std::move(borrowed->owner));
    }
    payload.Append(
        memory::Bytes{bytes.data(), bytes.size(), owner, borrowed->device});
  }
  owner->is_whole = true;
  return payload;
}

void ShmEndpoint::GiveBack(const RemoteRegion& region) {
  link_->borrower()->GiveBack(region[0].key);
}

bool ShmEndpoint::Poll() {
  if (events_ == nullptr || broken_.load(std::memory_order_relaxed)) {
    return false;
  }
  bool destroyed = false;
  destroyed_ = &destroyed;
  // Checks if the peer is gone before reading the ring, because packets that
  // the peer wrote before its end must be delivered before the end.
  const bool gone = link_->PeerIsGone();
  Lender* lender = link_->lender();
  if (lender->count() > 0) {
    absl::Status reclaimed = lender->Reclaim();
    if (!reclaimed.ok()) Fail(std::move(reclaimed));
  }
  bool any = Deliver(destroyed) > 0;
  if (destroyed) return true;
  if (sender_.RoomHasCome()) {
    any = true;
    sender_.StopWaiting();
    events_->OnWritable();
    if (destroyed) return true;
  }
  destroyed_ = nullptr;
  if (failed_.load(std::memory_order_relaxed)) {
    Break(failure_);
    return true;
  }
  if (gone && !receiver_.HasInput()) {
    link_->StopReceiving();
    if (!receiver_.HasInput()) Break(WhyGone());
    return true;
  }
  return any;
}

absl::Status ShmEndpoint::WhyGone() const {
  if (link_->PeerHasClosed()) {
    return absl::UnavailableError("peer closed its shared memory");
  }
  return absl::AbortedError(
      "the socket beside the shared memory ended: the peer's process died, or "
      "the socket was shut down");
}

int ShmEndpoint::Deliver(const bool& destroyed) {
  int count = 0;
  bool more = true;
  read_bytes_ = 0;
  while (more && count < kPollBudget && read_bytes_ < kPollBytes) {
    absl::Span<const uint8_t> packet;
    switch (receiver_.Receive(&packet)) {
      case RingReceiver::Result::kPacket:
        ++count;
        events_->OnPacket(packet);
        if (destroyed) return count;
        break;
      case RingReceiver::Result::kBroken:
        Fail(absl::DataLossError("the peer's ring holds no packet"));
        more = false;
        break;
      case RingReceiver::Result::kEmpty:
        more = false;
        break;
    }
  }
  if (count > 0 && receiver_.PeerWaits()) unannounced_ = true;
  return count;
}

void ShmEndpoint::Fail(absl::Status cause) {
  if (failed_.load(std::memory_order_relaxed)) return;
  failure_ = std::move(cause);
  failed_.store(true, std::memory_order_release);
}

// Copies the cause, because the event may destroy this endpoint.
void ShmEndpoint::Break(absl::Status cause) {
  broken_.store(true, std::memory_order_release);
  events_->OnBroken(cause);
}

bool ShmEndpoint::TakesDeviceMemory() const {
  return link_->device_lender()->lends();
}

bool ShmEndpoint::HasFailed() const {
  return failed_.load(std::memory_order_relaxed) &&
         !broken_.load(std::memory_order_relaxed);
}

bool ShmEndpoint::HasInput() const {
  if (broken_.load(std::memory_order_relaxed)) return false;
  return receiver_.HasInput() || link_->PeerIsGone() ||
         failed_.load(std::memory_order_relaxed) || sender_.RoomHasCome();
}

void ShmEndpoint::SetArmed(bool armed) {
  link_->own_page()->armed.store(armed ? NextArming() : 0,
                                 std::memory_order_relaxed);
  // Orders the arming before the caller's check of HasInput(). Pairs with the
  // peer's fence between its write and its check of the flag
  // (TakeDoorbellRequest()).
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

// Returns the next odd number, which is never 0, even after an overflow. A
// value repeats only after 2^31 armings. If none of these brought a packet, the
// peer would mistake the value for the one for which it has already rung.
uint32_t ShmEndpoint::NextArming() {
  return armings_.fetch_add(2, std::memory_order_relaxed);
}

std::vector<int> ShmEndpoint::wakeup_fds() const {
  const int fd = link_->doorbell()->fd();
  return fd < 0 ? std::vector<int>() : std::vector<int>{fd};
}

// Arms with a new value. If another thread changes the value meanwhile, that
// thread checks for input (arming) or polls (disarming).
void ShmEndpoint::ClearWakeup() {
  if (link_->IsForeign()) return;  // the page is the parent's
  std::atomic<uint32_t>* const flag = &link_->own_page()->armed;
  uint32_t armed = flag->load(std::memory_order_relaxed);
  if (armed != 0) flag->compare_exchange_strong(armed, NextArming());
  std::atomic_thread_fence(std::memory_order_seq_cst);  // as in SetArmed()
}

// Returns a guess, because the peer may arm, or stop sleeping, at any time.
bool ShmEndpoint::SendWakesPeer() const {
  const uint32_t armed =
      link_->peer_page()->armed.load(std::memory_order_relaxed);
  return armed != 0 && armed != rung_;
}

bool ShmEndpoint::TakeDoorbellRequest() {
  if (!unannounced_) return false;
  unannounced_ = false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  const uint32_t armed =
      link_->peer_page()->armed.load(std::memory_order_relaxed);
  // Rings once for each arming. After a ring the peer arms again and then
  // checks for input. One ring therefore announces all packets that were sent
  // before.
  if (armed == 0 || armed == rung_) return false;
  if (!link_->doorbell()->Ring()) return true;
  rung_ = armed;
  return false;
}

void ShmEndpoint::RingDoorbell() {}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
