// The live transports of this process, by the channelz ids of their sockets.

#ifndef PENSTOCK_TRANSPORT_GRPC_TRANSPORT_REGISTRY_H_
#define PENSTOCK_TRANSPORT_GRPC_TRANSPORT_REGISTRY_H_

#include <cstdint>
#include <unordered_map>

#include "transport/base/mutex.h"

namespace penstock {
namespace core {

class Transport;

// The registry of this process. Holds no references: a transport removes itself
// before its destruction. Thread-safe.
class TransportRegistry {
 public:
  static TransportRegistry* Get();

  void Add(intptr_t socket, Transport* transport);
  void Remove(intptr_t socket);
  // Returns the transport with a reference for the caller. Returns null if
  // there is no such transport.
  Transport* Find(intptr_t socket);

 private:
  base::Mutex mu_;
  std::unordered_map<intptr_t, Transport*> transports_ ABSL_GUARDED_BY(mu_);
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_TRANSPORT_REGISTRY_H_
