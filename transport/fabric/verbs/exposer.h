// Exposes payloads to the peer of one connection.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_EXPOSER_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_EXPOSER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/verbs/connection.h"
#include "transport/fabric/verbs/domain.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/send_queue.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {

// With windows: binds a memory window of type 2 for each exposure, to its bytes
// only, and exposes it under the window's key. The window lies on a copy in the
// pool, or on the payload itself where registering that pays: where it is
// registered already, large, or declared stable. Copies a payload of several
// pieces to the heap if the pool has no room.
//
// Without windows: stages every payload, that is, copies it to the pool and
// exposes it under the pool's key. The peer could read there what was staged
// for it before, and nothing else. A READ that the device repeats late, as
// Soft-RoCE does, is answered; to refuse it would cost the connection.
//
// Used by one thread at a time.
class Exposer {
 public:
  // Adds its requests to `queue`. Both must outlive this.
  Exposer(Connection* connection, SendQueue* queue)
      : connection_(connection), queue_(queue) {}

  // Exposes `payload`, and posts what is in the queue. Returns
  // RESOURCE_EXHAUSTED in the normal course of things.
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload);
  // Ends the exposure. Adds the request that invalidates its window, which the
  // caller posts.
  void Withdraw(const RemoteRegion& region);
  // Adds the invalidations for which the queue had no room.
  void Invalidate();
  // Tells that the oldest invalidation under way has ended: gives up the
  // memory, and may use the window again.
  void OnInvalidated();
  // Ends all exposures at once, before the queue pair is destroyed.
  void End();

 private:
  // Members are destroyed from the last to the first.
  struct Exposed {
    memory::Payload payload;
    SharedRegistration registration;  // null if the payload lies in a pool
    MemoryWindow window;              // none if the payload is staged
    bool is_copy = true;
  };

  absl::StatusOr<Exposure> Stage(const memory::Payload& payload);
  absl::StatusOr<Exposure> ExposeByWindow(const memory::Payload& payload);
  // Returns a registration of the payload where it lies. Has a null region if a
  // copy is better.
  Registered RegionInPlace(const memory::Payload& payload);
  absl::StatusOr<Exposure> ExposeCopy(const memory::Payload& payload);
  absl::StatusOr<Exposure> ExposeRegistered(memory::Bytes bytes, bool is_copy,
                                            Registered registered);
  absl::StatusOr<MemoryWindow> TakeWindow();
  void Bind(const MemoryWindow& window, ibv_mr* region,
            const memory::Bytes& bytes);
  Exposure Keep(memory::Bytes bytes, uint32_t rkey, Exposed exposed);

  Connection* const connection_;
  SendQueue* const queue_;
  // By key and address.
  std::map<std::pair<uint64_t, uint64_t>, Exposed> exposed_;
  std::vector<MemoryWindow> free_windows_;
  std::deque<Exposed> to_invalidate_;  // the queue had no room yet
  // Under way. The peer may read their memory until the request has ended.
  std::deque<Exposed> invalidating_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_EXPOSER_H_
