#include "tests/transport/grpc/locked_connection.h"

#include <cstdint>

#include "src/core/lib/iomgr/exec_ctx.h"
#include "transport/grpc/transport.h"
#include "transport/grpc/transport_registry.h"

namespace penstock {
namespace core {
namespace {

// Returns the newest transport of a server, with a reference, or null.
Transport* NewestOfServer() {
  constexpr intptr_t kSockets = 10000;  // channelz counts from 1
  for (intptr_t socket = kSockets; socket > 0; --socket) {
    Transport* transport = TransportRegistry::Get()->Find(socket);
    if (transport == nullptr) continue;
    if (!transport->is_client()) return transport;
    transport->Unref();
  }
  return nullptr;
}

}  // namespace

std::unique_ptr<LockedConnection> LockedConnection::Newest() {
  Transport* const transport = NewestOfServer();
  if (transport == nullptr) return nullptr;
  auto result = std::make_unique<LockedConnection>();
  LockedConnection* const self = result.get();
  result->thread_ = std::thread([self, transport] {
    grpc_core::ApplicationCallbackExecCtx callback_exec_ctx;
    grpc_core::ExecCtx exec_ctx;
    {
      Transport::Section section(transport);
      self->locked_.Notify();
      self->ends_.WaitForNotification();
    }
    transport->Unref();
  });
  result->locked_.WaitForNotification();
  return result;
}

LockedConnection::~LockedConnection() {
  ends_.Notify();
  thread_.join();
}

}  // namespace core
}  // namespace penstock
