// The live transports of this process by their number in channelz.

#ifndef PENSTOCK_TRANSPORT_GRPC_TRANSPORT_REGISTRY_H_
#define PENSTOCK_TRANSPORT_GRPC_TRANSPORT_REGISTRY_H_

#include <cstdint>
#include <unordered_map>

#include "transport/base/mutex.h"

namespace penstock {
namespace core {

class Transport;

// Thread-safe.
class TransportRegistry {
 public:
  static TransportRegistry* Get();

  void Add(intptr_t socket, Transport* transport);
  void Remove(intptr_t socket);
  // Null, or a transport with one more reference, which is the caller's.
  Transport* Find(intptr_t socket);

 private:
  base::Mutex mu_;
  std::unordered_map<intptr_t, Transport*> transports_ ABSL_GUARDED_BY(mu_);
};

}  // namespace core
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_GRPC_TRANSPORT_REGISTRY_H_
