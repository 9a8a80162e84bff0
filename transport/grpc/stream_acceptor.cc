#include "transport/grpc/stream_acceptor.h"

#include <utility>

#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/session/refusal.h"

namespace penstock {
namespace core {

void StreamAcceptor::SetFunction(const Function& accept) {
  accept_ = accept;
  taken_back_ = accept.function == nullptr;
  if (!taken_back_) return;
  for (uint32_t stream : std::exchange(opened_, {})) Refuse(stream);
}

void StreamAcceptor::Consume(grpc_closure* closure) {
  if (closure == nullptr) return;
  if (taken_back_ && accepting_ > 0) return consumed_.push_back(closure);
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, closure, absl::OkStatus());
}

void StreamAcceptor::OnOpened(uint32_t stream) {
  if (taken_back_) return Refuse(stream);
  opened_.push_back(stream);
}

StreamAcceptor::Batch StreamAcceptor::TakeBatch() {
  accepting_ += opened_.size();
  return {accept_, std::exchange(opened_, {})};
}

void StreamAcceptor::Give(grpc_transport* transport, const Function& accept,
                          uint32_t stream) {
  accept.function(
      accept.argument, transport,
      reinterpret_cast<const void*>(static_cast<uintptr_t>(stream)));
}

void StreamAcceptor::OnGiven(uint32_t stream) {
  Refuse(stream);
  if (--accepting_ > 0) return;
  for (grpc_closure* closure : std::exchange(consumed_, {})) Consume(closure);
}

// Refuses the stream unless gRPC has accepted it. gRPC's server accepts no
// stream while it shuts down.
void StreamAcceptor::Refuse(uint32_t stream) {
  if (!session_->streams().IsUnattached(stream)) return;
  session_->output().SendReset(
      stream,
      session::Refusal(absl::UnavailableError("server is shutting down")));
  session_->streams().Detach(stream);
}

}  // namespace core
}  // namespace penstock
