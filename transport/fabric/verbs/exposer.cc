#include "transport/fabric/verbs/exposer.h"

#include <memory>
#include <utility>

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

// Above this a payload is registered where it lies: pinning its pages then
// costs less than copying them.
constexpr size_t kCopyMaxBytes = 256 * 1024;

uint64_t AddressOf(const void* data) {
  return reinterpret_cast<uintptr_t>(data);
}

}  // namespace

absl::StatusOr<Exposure> Exposer::Expose(const memory::Payload& payload) {
  if (!connection_->uses_windows()) return Stage(payload);
  if (payload.size() > kCopyMaxBytes && payload.pieces().size() == 1) {
    absl::StatusOr<Exposure> in_place = ExposeInPlace(payload.pieces()[0]);
    // Memory that may only be read cannot be registered, for one.
    if (in_place.ok()) return in_place;
  }
  absl::StatusOr<Exposure> in_pool = ExposeInPool(payload);
  if (in_pool.ok()) return in_pool;
  return ExposeCopy(payload);
}

absl::StatusOr<Exposure> Exposer::Stage(const memory::Payload& payload) {
  absl::StatusOr<std::shared_ptr<Lease>> lease =
      connection_->exposed_pool()->Allocate(payload.size());
  if (!lease.ok()) return lease.status();
  uint8_t* const data = (*lease)->data();
  payload.CopyTo(data);
  const uint32_t rkey = (*lease)->region()->rkey;
  return Keep(memory::Bytes{data, payload.size(), *std::move(lease)}, rkey,
              Exposed());
}

absl::StatusOr<Exposure> Exposer::ExposeInPlace(const memory::Bytes& bytes) {
  absl::StatusOr<MemoryRegion> region = RegMr(
      connection_->api(), connection_->domain().get(),
      const_cast<uint8_t*>(bytes.data), bytes.size, IBV_ACCESS_REMOTE_READ);
  if (!region.ok()) return region.status();
  const uint32_t rkey = (*region)->rkey;
  Exposed exposed;
  exposed.region = *std::move(region);
  return Keep(bytes, rkey, std::move(exposed));
}

absl::StatusOr<Exposure> Exposer::ExposeCopy(const memory::Payload& payload) {
  absl::StatusOr<memory::Block> block = memory::AllocateBlock(payload.size());
  if (!block.ok()) return block.status();
  payload.CopyTo(block->data.get());
  return ExposeInPlace(block->AsBytes());
}

absl::StatusOr<Exposure> Exposer::ExposeInPool(const memory::Payload& payload) {
  Invalidate();
  if (queue_->full()) {
    return absl::ResourceExhaustedError("the send queue is full");
  }
  absl::StatusOr<std::shared_ptr<Lease>> lease =
      connection_->exposed_pool()->Allocate(payload.size());
  if (!lease.ok()) return lease.status();
  absl::StatusOr<MemoryWindow> window = TakeWindow();
  if (!window.ok()) return window.status();
  uint8_t* const data = (*lease)->data();
  payload.CopyTo(data);
  Bind(*window, **lease);
  const uint32_t rkey = (*window)->rkey;
  Exposed exposed;
  exposed.window = *std::move(window);
  return Keep(memory::Bytes{data, payload.size(), *std::move(lease)}, rkey,
              std::move(exposed));
}

absl::StatusOr<MemoryWindow> Exposer::TakeWindow() {
  if (free_windows_.empty()) {
    return AllocWindow(connection_->api(), connection_->domain().get());
  }
  MemoryWindow window = std::move(free_windows_.back());
  free_windows_.pop_back();
  return window;
}

void Exposer::Bind(const MemoryWindow& window, const Lease& lease) {
  ibv_send_wr* bind =
      queue_->Add(SendQueue::Kind::kBinding, 0, SendQueue::Signal::kWhenDue);
  bind->opcode = IBV_WR_BIND_MW;
  bind->num_sge = 0;
  bind->bind_mw.mw = window.get();
  bind->bind_mw.rkey = ibv_inc_rkey(window->rkey);
  bind->bind_mw.bind_info.mr = lease.region();
  bind->bind_mw.bind_info.addr = AddressOf(lease.data());
  bind->bind_mw.bind_info.length = lease.size();
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
    ibv_send_wr* request = queue_->Add(SendQueue::Kind::kInvalidation, 0,
                                       SendQueue::Signal::kWhenDue);
    request->opcode = IBV_WR_LOCAL_INV;
    request->num_sge = 0;
    request->invalidate_rkey = oldest.window->rkey;
    // The device works in order: it may be bound again behind this.
    free_windows_.push_back(std::move(oldest.window));
    invalidating_.push_back(std::move(oldest.payload));
    to_invalidate_.pop_front();
  }
}

void Exposer::OnInvalidated() { invalidating_.pop_front(); }

// A window that is bound belongs to its queue pair, which cannot be destroyed
// before; those that look free may be bound, as nothing is invalidated in a
// queue pair that has failed.
void Exposer::End() {
  exposed_.clear();
  to_invalidate_.clear();
  invalidating_.clear();
  free_windows_.clear();
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
