#include "transport/grpc/transport_registry.h"

#include "transport/grpc/transport.h"

namespace penstock {
namespace core {

TransportRegistry* TransportRegistry::Get() {
  static auto* const registry = new TransportRegistry();
  return registry;
}

void TransportRegistry::Add(intptr_t socket, Transport* transport) {
  base::MutexLock lock(&mu_);
  transports_[socket] = transport;
}

void TransportRegistry::Remove(intptr_t socket) {
  base::MutexLock lock(&mu_);
  transports_.erase(socket);
}

Transport* TransportRegistry::Find(intptr_t socket) {
  base::MutexLock lock(&mu_);
  auto it = transports_.find(socket);
  if (it == transports_.end() || !it->second->RefUnlessDead()) return nullptr;
  return it->second;
}

}  // namespace core
}  // namespace penstock
