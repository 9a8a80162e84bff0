// Accepts streams: gives gRPC the streams that the peer opens, or refuses them.

#include <utility>

#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/grpc/transport.h"
#include "transport/session/refusal.h"

namespace penstock {
namespace core {
namespace {

// Caps ended streams that gRPC has not destroyed. A call takes about 10 KiB of
// gRPC's memory, but opening and resetting a stream costs a peer only about 100
// bytes. Honest peers have only a few ended streams at a time.
constexpr int kMaxEnded = 2048;

}  // namespace

void Transport::SetAcceptor(const Acceptor& acceptor) {
  acceptor_ = acceptor;
  acceptor_taken_back_ = acceptor.function == nullptr;
  if (acceptor_taken_back_) RefuseOpened();
}

void Transport::Consume(grpc_closure* closure) {
  if (closure == nullptr) return;
  if (acceptor_taken_back_ && accepting_ > 0) {
    return consumed_.push_back(closure);
  }
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, closure, absl::OkStatus());
}

void Transport::OnStreamOpened(uint32_t stream) {
  if (!departure_.OnStreamOpened(stream)) {
    return session_->DetachStream(stream);
  }
  if (acceptor_taken_back_) return RefuseStream(stream);
  opened_.push_back(stream);
}

// Returns true if gRPC may get new streams. Returns false while gRPC has too
// many ended calls.
bool Transport::MayGiveToGrpc() const {
  return acceptor_.function != nullptr && MayAccept() && !HasTooManyEnded();
}

bool Transport::HasTooManyEnded() const {
  if (ended_.load(std::memory_order_relaxed) <= kMaxEnded) return false;
  awaits_destruction_.store(true);
  return ended_.load() > kMaxEnded;  // gRPC may just have destroyed one
}

void Transport::OnDestroyed() {
  if (ended_.fetch_sub(1) - 1 > kMaxEnded) return;
  if (awaits_destruction_.load(std::memory_order_relaxed) &&
      awaits_destruction_.exchange(false)) {
    Section section(this);  // accepts the waiting streams
  }
}

// Unlocks before accepting, because gRPC calls init_stream, which locks.
void Transport::UnlockAndAccept() {
  const std::vector<uint32_t> opened = std::exchange(opened_, {});
  const Acceptor acceptor = acceptor_;
  accepting_ += opened.size();
  mu_.unlock();
  for (uint32_t id : opened) AcceptStream(acceptor, id);
}

void Transport::AcceptStream(const Acceptor& acceptor, uint32_t id) {
  acceptor.function(acceptor.argument, this,
                    reinterpret_cast<const void*>(static_cast<uintptr_t>(id)));
  Section section(this);
  RefuseStream(id);
  if (--accepting_ > 0) return;
  for (grpc_closure* closure : std::exchange(consumed_, {})) Consume(closure);
}

// Refuses the stream if gRPC has not accepted it, because gRPC's server is then
// shutting down.
void Transport::RefuseStream(uint32_t id) {
  if (!session_->IsUnattached(id)) return;
  session_->SendReset(
      id, session::Refusal(absl::UnavailableError("server is shutting down")));
  session_->DetachStream(id);
}

void Transport::RefuseOpened() {
  for (uint32_t id : std::exchange(opened_, {})) RefuseStream(id);
}

}  // namespace core
}  // namespace penstock
