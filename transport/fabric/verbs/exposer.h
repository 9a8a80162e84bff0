// Lets the peer read payloads.

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
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/send_queue.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {

// With windows, a payload is read under a key that lives no longer than its
// exposure. Small ones are copied to the pool, and the key is that of a memory
// window of type 2 on the copy. Large ones in one piece are registered where
// they lie, and the key is that of the region. What lies in pieces, and does
// not fit into the pool, is copied and registered.
//
// Without, every payload is staged: copied to the pool, under the pool's key.
// The peer could read there what was staged for it before, and nothing else. A
// read that is repeated late, as Soft-RoCE does, is answered and not refused,
// which would cost the connection.
//
// Used by one thread at a time.
class Exposer {
 public:
  // Both outlive it; requests go through `queue`.
  Exposer(Connection* connection, SendQueue* queue)
      : connection_(connection), queue_(queue) {}

  // Posts what waits in the queue. RESOURCE_EXHAUSTED is a normal answer.
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload);
  // Adds the request that ends the key; the caller posts it.
  void Withdraw(const RemoteRegion& region);
  // Adds those for which there was no room.
  void Invalidate();
  // The oldest of those requests has ended.
  void OnInvalidated();
  // Ends all keys, for the queue pair is about to end.
  void End();

 private:
  struct Exposed {
    memory::Payload payload;
    // One of the two, or none if it is staged.
    MemoryWindow window;
    MemoryRegion region;
  };

  absl::StatusOr<Exposure> Stage(const memory::Payload& payload);
  absl::StatusOr<Exposure> ExposeInPlace(const memory::Bytes& bytes);
  absl::StatusOr<Exposure> ExposeInPool(const memory::Payload& payload);
  absl::StatusOr<Exposure> ExposeCopy(const memory::Payload& payload);
  absl::StatusOr<MemoryWindow> TakeWindow();
  void Bind(const MemoryWindow& window, const Lease& lease);
  Exposure Keep(memory::Bytes bytes, uint32_t rkey, Exposed exposed);

  Connection* const connection_;
  SendQueue* const queue_;
  // By key and address.
  std::map<std::pair<uint64_t, uint64_t>, Exposed> exposed_;
  std::vector<MemoryWindow> free_windows_;
  std::deque<Exposed> to_invalidate_;  // there was no room to ask
  // Asked for: until it is done the peer may read what lies there.
  std::deque<memory::Payload> invalidating_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_EXPOSER_H_
