#include "transport/fabric/verbs/exposer.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "transport/memory/device_access.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Limits the parts of an exposure: each takes two of the queue's 128 requests.
constexpr size_t kMaxWindows = 32;

uint64_t AddressOf(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

}  // namespace

absl::StatusOr<Exposure> Exposer::Expose(const memory::Payload& payload,
                                         size_t max_parts) {
  if (!connection_->domain()->has_windows()) return Stage(payload, max_parts);
  Invalidate();
  if (queue_->full()) {
    return absl::ResourceExhaustedError("the send queue is full");
  }
  return ExposeByWindows(payload, max_parts);
}

absl::StatusOr<Exposure> Exposer::Stage(const memory::Payload& payload,
                                        size_t max_parts) {
  absl::StatusOr<std::shared_ptr<PoolLease>> lease =
      connection_->domain()->exposed_pool()->Allocate(
          payload.size(), connection_->exposed_quota());
  if (!lease.ok()) return lease.status();
  uint8_t* const data = (*lease)->data();
  absl::Status copied = payload.CopyFromAnywhereTo(data);
  if (!copied.ok()) return copied;
  const uint32_t rkey = (*lease)->region()->rkey;
  const memory::Bytes bytes{data, payload.size(), *std::move(lease)};
  Exposure exposure;
  const Stretch all{/*in_place=*/false, 0, payload.pieces().size(),
                    payload.size()};
  AppendParts(Keep(bytes, AddressOf(data), rkey, Exposed()),
              PartsOf(payload, all, kMinPartBytes, max_parts),
              &exposure.region);
  exposure.stable = memory::Payload(bytes);
  return exposure;
}

absl::StatusOr<Exposure> Exposer::ExposeByWindows(
    const memory::Payload& payload, size_t max_parts) {
  const memory::Payload::Pieces& pieces = payload.pieces();
  const size_t windows =
      std::min<size_t>({kMaxWindows, max_parts, queue_->room()});
  const size_t min_bytes = pieces.size() == 1 ? 0 : kMinPartBytes;
  std::vector<bool> reachable(pieces.size());
  for (size_t i = 0; i < pieces.size(); ++i) {
    reachable[i] = pieces[i].size >= min_bytes && MayStay(pieces[i]);
  }
  // Registers only pieces that stay in place. Registering may fail for some
  // pieces.
  std::vector<Registered> in_place(pieces.size());
  for (const Stretch& stretch :
       DivideIntoParts(payload, reachable, min_bytes, windows)) {
    if (!stretch.in_place) continue;
    const size_t i = stretch.first_piece;
    in_place[i] = RegionInPlace(pieces[i]);
  }
  for (size_t i = 0; i < pieces.size(); ++i) {
    reachable[i] = in_place[i].region != nullptr;
  }
  return ExposeParts(payload,
                     DivideIntoParts(payload, reachable, min_bytes, windows),
                     std::move(in_place), max_parts);
}

bool Exposer::MayStay(const memory::Bytes& bytes) {
  if (bytes.device != nullptr) {
    return bytes.size >= memory::kMinDeviceBytes &&
           bytes.size <= kMaxWindowBytes;
  }
  return bytes.size > kCopyMaxBytes ||
         connection_->domain()->FindForWindow(bytes).region != nullptr ||
         memory::FindStable(bytes.data, bytes.size) != nullptr;
}

// Returns the region of the bytes themselves, for an exposure without a copy.
// Fails, for example, for read-only memory.
Registered Exposer::RegionInPlace(const memory::Bytes& bytes) {
  if (bytes.device != nullptr) {
    return connection_->domain()->GetGpuToExpose(bytes).value_or(Registered());
  }
  Registered registered = connection_->domain()->FindForWindow(bytes);
  if (registered.region != nullptr) return registered;
  return connection_->domain()->GetForWindow(bytes).value_or(Registered());
}

absl::StatusOr<Exposer::Copy> Exposer::MakeCopy(size_t size) {
  Copy copy;
  absl::StatusOr<std::shared_ptr<PoolLease>> lease =
      connection_->domain()->exposed_pool()->Allocate(
          size, connection_->exposed_quota());
  if (lease.ok()) {
    copy.data = (*lease)->data();
    copy.registered.region = (*lease)->region();
    copy.bytes = memory::Bytes{copy.data, size, *std::move(lease)};
    return copy;
  }
  absl::StatusOr<memory::Block> block = memory::AllocateBlock(size);
  if (!block.ok()) return block.status();
  copy.data = block->data.get();
  copy.bytes = block->AsBytes();
  absl::StatusOr<Registered> registered =
      connection_->domain()->GetForWindow(copy.bytes);
  if (!registered.ok()) return registered.status();
  copy.registered = *std::move(registered);
  return copy;
}

absl::StatusOr<Exposure> Exposer::ExposeParts(
    const memory::Payload& payload, const std::vector<Stretch>& stretches,
    std::vector<Registered> in_place, size_t max_parts) {
  Copy copy;
  RemotePart copied;  // the whole copy
  const size_t gathered_bytes = GatheredBytes(stretches);
  if (gathered_bytes > 0) {
    absl::StatusOr<Copy> made = MakeCopy(gathered_bytes);
    if (!made.ok()) return made.status();
    copy = *std::move(made);
    absl::Status gathered = Gather(payload, stretches, copy.data);
    if (!gathered.ok()) return gathered;
    absl::StatusOr<RemotePart> part = ExposeRegistered(
        copy.bytes, /*is_copy=*/true, std::move(copy.registered));
    if (!part.ok()) return part.status();
    copied = *part;
  }
  Exposure exposure;
  GatheredLayout layout;
  size_t spare_parts = max_parts - stretches.size();
  for (const Stretch& stretch : stretches) {
    if (!stretch.in_place) {
      const size_t begin = layout.Add(stretch.bytes);
      const std::vector<size_t> parts =
          PartsOf(payload, stretch, kMinPartBytes, 1 + spare_parts);
      spare_parts -= parts.size() - 1;
      AppendParts({copied.key, copied.offset + begin, stretch.bytes}, parts,
                  &exposure.region);
      exposure.stable.Append(copy.bytes.Part(begin, stretch.bytes));
      continue;
    }
    const memory::Bytes& piece = payload.pieces()[stretch.first_piece];
    absl::StatusOr<RemotePart> part = ExposeRegistered(
        piece, /*is_copy=*/false, std::move(in_place[stretch.first_piece]));
    if (!part.ok()) {
      exposure.region.push_back(copied);
      Withdraw(exposure.region);
      return part.status();
    }
    exposure.region.push_back(*part);
    exposure.stable.Append(piece);
  }
  return exposure;
}

absl::StatusOr<RemotePart> Exposer::ExposeRegistered(const memory::Bytes& bytes,
                                                     bool is_copy,
                                                     Registered registered) {
  Exposed exposed;
  exposed.is_copy = is_copy;
  exposed.registration = std::move(registered.share);
  if (registered.by_key) {
    return Keep(bytes, AddressOf(registered.region->addr),
                registered.region->rkey, std::move(exposed));
  }
  absl::StatusOr<MemoryWindow> window = TakeWindow();
  if (!window.ok()) return window.status();
  Bind(*window, registered.region, bytes);
  const uint32_t rkey = (*window)->rkey;
  exposed.window = *std::move(window);
  return Keep(bytes, AddressOf(bytes.data), rkey, std::move(exposed));
}

absl::StatusOr<MemoryWindow> Exposer::TakeWindow() {
  if (free_windows_.empty()) {
    return AllocWindow(connection_->api(), connection_->domain()->get());
  }
  MemoryWindow window = std::move(free_windows_.back());
  free_windows_.pop_back();
  return window;
}

void Exposer::Bind(const MemoryWindow& window, ibv_mr* region,
                   const memory::Bytes& bytes) {
  ibv_send_wr* bind =
      queue_->Add(SendQueue::Kind::kBinding, 0, SendQueue::Signal::kWhenDue);
  bind->opcode = IBV_WR_BIND_MW;
  bind->num_sge = 0;
  bind->bind_mw.mw = window.get();
  bind->bind_mw.rkey = ibv_inc_rkey(window->rkey);
  bind->bind_mw.bind_info.mr = region;
  bind->bind_mw.bind_info.addr = AddressOf(bytes.data);
  bind->bind_mw.bind_info.length = bytes.size;
  bind->bind_mw.bind_info.mw_access_flags = IBV_ACCESS_REMOTE_READ;
  const uint32_t rkey = bind->bind_mw.rkey;
  // Posts immediately, even within a batch, because the device reads the
  // window's old key and sets the new key when it executes the request.
  connection_->Post(queue_);
  window->rkey = rkey;
}

RemotePart Exposer::Keep(const memory::Bytes& bytes, uint64_t address,
                         uint32_t rkey, Exposed exposed) {
  const RemotePart part{rkey, address, bytes.size};
  exposed.payload = memory::Payload(bytes);
  exposed_[{part.key, part.offset}] = std::move(exposed);
  return part;
}

void Exposer::Withdraw(const RemoteRegion& region) {
  for (const RemotePart& part : region) {
    // Finds the exposure by its first copied part. All copied parts share one
    // window, whose address is that of the first part.
    auto it = exposed_.find({part.key, part.offset});
    if (it == exposed_.end()) continue;
    if (it->second.window) to_invalidate_.push_back(std::move(it->second));
    exposed_.erase(it);
  }
  Invalidate();
}

void Exposer::Invalidate() {
  while (!to_invalidate_.empty() && !queue_->full()) {
    Exposed& oldest = to_invalidate_.front();
    // Requests a completion immediately if the memory is not a copy, because
    // the memory's owner may be waiting for it.
    ibv_send_wr* request = queue_->Add(
        SendQueue::Kind::kInvalidation, 0,
        oldest.is_copy ? SendQueue::Signal::kWhenDue : SendQueue::Signal::kNow);
    request->opcode = IBV_WR_LOCAL_INV;
    request->num_sge = 0;
    request->invalidate_rkey = oldest.window->rkey;
    // Frees the window now, because the device works in order: a later request
    // may bind the window again.
    free_windows_.push_back(std::move(oldest.window));
    invalidating_.push_back(std::move(oldest));
    to_invalidate_.pop_front();
  }
}

void Exposer::OnInvalidated() { invalidating_.pop_front(); }

// Destroys all windows. A bound window belongs to its queue pair and its
// region, and must be destroyed before both. A window that looks free may still
// be bound, because a failed queue pair invalidates no windows.
void Exposer::End() {
  free_windows_.clear();
  exposed_.clear();
  to_invalidate_.clear();
  invalidating_.clear();
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
