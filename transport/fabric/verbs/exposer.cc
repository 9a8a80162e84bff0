#include "transport/fabric/verbs/exposer.h"

#include <memory>
#include <utility>

#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Up to this a payload is copied rather than registered for one use: a system
// call that pins pages, and another that lets go of them, take tens of
// microseconds and some for each page, a copy 10 for 100 KiB.
constexpr size_t kCopyMaxBytes = 256 * 1024;

uint64_t AddressOf(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

}  // namespace

absl::StatusOr<Exposure> Exposer::Expose(const memory::Payload& payload) {
  if (!connection_->domain()->has_windows()) return Stage(payload);
  Invalidate();
  if (queue_->full()) {
    return absl::ResourceExhaustedError("the send queue is full");
  }
  return ExposeByWindow(payload);
}

absl::StatusOr<Exposure> Exposer::Stage(const memory::Payload& payload) {
  absl::StatusOr<std::shared_ptr<PoolLease>> lease =
      connection_->domain()->exposed_pool()->Allocate(
          payload.size(), connection_->exposed_quota());
  if (!lease.ok()) return lease.status();
  uint8_t* const data = (*lease)->data();
  payload.CopyTo(data);
  const uint32_t rkey = (*lease)->region()->rkey;
  return Keep(memory::Bytes{data, payload.size(), *std::move(lease)}, rkey,
              Exposed());
}

absl::StatusOr<Exposure> Exposer::ExposeByWindow(
    const memory::Payload& payload) {
  Registered in_place = RegionInPlace(payload);
  if (in_place.region != nullptr) {
    return ExposeRegistered(payload.pieces()[0], /*is_copy=*/false,
                            std::move(in_place));
  }
  absl::StatusOr<std::shared_ptr<PoolLease>> lease =
      connection_->domain()->exposed_pool()->Allocate(
          payload.size(), connection_->exposed_quota());
  if (!lease.ok()) return ExposeCopy(payload);
  uint8_t* const data = (*lease)->data();
  payload.CopyTo(data);
  Registered registered;
  registered.region = (*lease)->region();
  return ExposeRegistered(
      memory::Bytes{data, payload.size(), *std::move(lease)}, /*is_copy=*/true,
      std::move(registered));
}

Registered Exposer::RegionInPlace(const memory::Payload& payload) {
  if (payload.pieces().size() != 1) return Registered();
  const memory::Bytes& bytes = payload.pieces()[0];
  Registered registered = connection_->domain()->FindForWindow(bytes);
  if (registered.region != nullptr) return registered;
  if (bytes.size <= kCopyMaxBytes &&
      memory::FindStable(bytes.data, bytes.size) == nullptr) {
    return Registered();
  }
  // Memory that may only be read cannot be registered, for one.
  return connection_->domain()->GetForWindow(bytes).value_or(Registered());
}

absl::StatusOr<Exposure> Exposer::ExposeCopy(const memory::Payload& payload) {
  absl::StatusOr<memory::Block> block = memory::AllocateBlock(payload.size());
  if (!block.ok()) return block.status();
  payload.CopyTo(block->data.get());
  absl::StatusOr<Registered> registered =
      connection_->domain()->GetForWindow(block->AsBytes());
  if (!registered.ok()) return registered.status();
  return ExposeRegistered(block->AsBytes(), /*is_copy=*/true,
                          *std::move(registered));
}

absl::StatusOr<Exposure> Exposer::ExposeRegistered(memory::Bytes bytes,
                                                   bool is_copy,
                                                   Registered registered) {
  absl::StatusOr<MemoryWindow> window = TakeWindow();
  if (!window.ok()) return window.status();
  Bind(*window, registered.region, bytes);
  const uint32_t rkey = (*window)->rkey;
  Exposed exposed;
  exposed.registration = std::move(registered.share);
  exposed.window = *std::move(window);
  exposed.is_copy = is_copy;
  return Keep(std::move(bytes), rkey, std::move(exposed));
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
  // At once, even within a batch: the key that the window had is read by the
  // posting, and changes only then.
  connection_->Post(queue_);
  window->rkey = rkey;
}

Exposure Exposer::Keep(memory::Bytes bytes, uint32_t rkey, Exposed exposed) {
  Exposure exposure;
  exposure.region.key = rkey;
  exposure.region.offset = AddressOf(bytes.data);
  exposure.region.length = bytes.size;
  exposure.stable = memory::Payload(std::move(bytes));
  exposed.payload = exposure.stable;
  exposed_[{rkey, exposure.region.offset}] = std::move(exposed);
  return exposure;
}

void Exposer::Withdraw(const RemoteRegion& region) {
  auto it = exposed_.find({region.key, region.offset});
  if (it == exposed_.end()) return;
  if (it->second.window) to_invalidate_.push_back(std::move(it->second));
  exposed_.erase(it);
  Invalidate();
}

void Exposer::Invalidate() {
  while (!to_invalidate_.empty() && !queue_->full()) {
    Exposed& oldest = to_invalidate_.front();
    // Somebody may wait for memory that is not ours.
    ibv_send_wr* request = queue_->Add(
        SendQueue::Kind::kInvalidation, 0,
        oldest.is_copy ? SendQueue::Signal::kWhenDue : SendQueue::Signal::kNow);
    request->opcode = IBV_WR_LOCAL_INV;
    request->num_sge = 0;
    request->invalidate_rkey = oldest.window->rkey;
    // The device works in order: it may be bound again behind this.
    free_windows_.push_back(std::move(oldest.window));
    invalidating_.push_back(std::move(oldest));
    to_invalidate_.pop_front();
  }
}

void Exposer::OnInvalidated() { invalidating_.pop_front(); }

// A window that is bound belongs to its queue pair, which cannot be destroyed
// before, and to its region; those that look free may be bound, as nothing is
// invalidated in a queue pair that has failed.
void Exposer::End() {
  free_windows_.clear();
  exposed_.clear();
  to_invalidate_.clear();
  invalidating_.clear();
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
