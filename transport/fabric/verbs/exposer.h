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
#include "transport/fabric/verbs/domain.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/send_queue.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {

// With windows, the key is that of a memory window of type 2, which is bound
// for one exposure and to its bytes. It lies on a copy in the pool, or on the
// payload itself where that is registered already, is large, or was declared
// to be stable, so that registering it pays. What is in several pieces and does
// not fit into the pool is copied to the heap.
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
  // Ended from the last to the first.
  struct Exposed {
    memory::Payload payload;
    SharedRegistration registration;  // null: the payload lies in a pool
    MemoryWindow window;              // none: it is staged
    bool is_copy = true;
  };

  absl::StatusOr<Exposure> Stage(const memory::Payload& payload);
  absl::StatusOr<Exposure> ExposeByWindow(const memory::Payload& payload);
  // Of the payload as it is; a null region says that a copy is better.
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
  std::deque<Exposed> to_invalidate_;  // there was no room to ask
  // Asked for, their windows taken out: until it is done the peer may read what
  // lies there.
  std::deque<Exposed> invalidating_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_EXPOSER_H_
