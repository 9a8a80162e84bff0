#include "transport/grpc/pings.h"

#include "src/core/lib/iomgr/exec_ctx.h"

namespace penstock {
namespace core {

void Pings::Send(grpc_closure* on_ack) {
  if (session_->closed()) {
    return grpc_core::ExecCtx::Run(DEBUG_LOCATION, on_ack,
                                   absl::UnavailableError("session closed"));
  }
  const uint64_t cookie = next_++;
  pings_[cookie] = on_ack;
  session_->SendPing(cookie);
}

void Pings::OnPong(uint64_t cookie) {
  auto it = pings_.find(cookie);
  if (it == pings_.end()) return;
  grpc_core::ExecCtx::Run(DEBUG_LOCATION, it->second, absl::OkStatus());
  pings_.erase(it);
}

void Pings::End(const absl::Status& cause) {
  for (auto& ping : pings_) {
    grpc_core::ExecCtx::Run(DEBUG_LOCATION, ping.second, cause);
  }
  pings_.clear();
}

}  // namespace core
}  // namespace penstock
