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
#include "transport/fabric/gather.h"
#include "transport/fabric/verbs/cm_connection.h"
#include "transport/fabric/verbs/domain.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/send_queue.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Exposes payloads for the peer to read, in one of two ways. With windows:
// binds memory windows of type 2 to the bytes of each exposure, and gives the
// windows' keys to the peer. Exposes a piece of the payload without a copy if
// the piece is already registered, is large, is declared stable, or is on a GPU
// that the device reaches. Copies the other pieces to the pool, or to the heap
// if the pool has no room. The copied pieces share one window.
//
// If no window can be bound on a GPU's piece, the piece gets its own region, at
// addresses that only the peer is told. The region ends with the exposure.
//
// Without windows: copies every payload to the pool, and gives the pool's key
// to the peer. With this key the peer can read earlier payloads that were
// copied for it, but nothing else. The pool's key stays valid, because a device
// may repeat a READ late, as Soft-RoCE does, and a refused READ would end the
// connection.
//
// Used by one thread at a time.
class Exposer {
 public:
  // Makes an exposer that adds its requests to `queue`. `connection` and
  // `queue` must outlive this object.
  Exposer(CmConnection* connection, SendQueue* queue)
      : connection_(connection), queue_(queue) {}

  // Exposes `payload` in at most `max_parts` parts, and posts the queue.
  // RESOURCE_EXHAUSTED is a normal answer.
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                  size_t max_parts);
  // Ends the exposure. Adds the request that invalidates the exposure's window
  // to the queue. The caller posts the queue.
  void Withdraw(const RemoteRegion& region);
  // Adds the invalidations that did not fit into the queue before.
  void Invalidate();
  // Records that the oldest invalidation in flight has ended. Releases the
  // memory, and makes the window reusable.
  void OnInvalidated();
  // Ends all exposures immediately, before the queue pair is destroyed.
  void End();

 private:
  // Members are destroyed from the last to the first.
  struct Exposed {
    memory::Payload payload;
    SharedRegistration registration;  // null if the payload is in a pool
    MemoryWindow window;  // none if peers read by a region's own key
    bool is_copy = true;
  };
  // The memory into which pieces are copied.
  struct Copy {
    memory::Bytes bytes;
    uint8_t* data = nullptr;  // of `bytes`, to be filled
    Registered registered;
  };

  absl::StatusOr<Exposure> Stage(const memory::Payload& payload,
                                 size_t max_parts);
  absl::StatusOr<Exposure> ExposeByWindows(const memory::Payload& payload,
                                           size_t max_parts);
  // Returns true if registering `bytes` where they are costs less than copying
  // them.
  bool MayStay(const memory::Bytes& bytes);
  // Returns a registration of `bytes` themselves, for an exposure without a
  // copy. Returns a null region if `bytes` cannot be registered.
  Registered RegionInPlace(const memory::Bytes& bytes);
  absl::StatusOr<Copy> MakeCopy(size_t size);
  absl::StatusOr<Exposure> ExposeParts(const memory::Payload& payload,
                                       const std::vector<Stretch>& stretches,
                                       std::vector<Registered> in_place,
                                       size_t max_parts);
  // Binds a window to `bytes`, unless peers read them by the region's key.
  absl::StatusOr<RemotePart> ExposeRegistered(const memory::Bytes& bytes,
                                              bool is_copy,
                                              Registered registered);
  absl::StatusOr<MemoryWindow> TakeWindow();
  void Bind(const MemoryWindow& window, ibv_mr* region,
            const memory::Bytes& bytes);
  // Records an exposure of `bytes`, which keeps them alive. `address` is the
  // address of the bytes for peers.
  RemotePart Keep(const memory::Bytes& bytes, uint64_t address, uint32_t rkey,
                  Exposed exposed);

  CmConnection* const connection_;
  SendQueue* const queue_;
  // The exposures, by their key and address.
  std::map<std::pair<uint64_t, uint64_t>, Exposed> exposed_;
  std::vector<MemoryWindow> free_windows_;
  std::deque<Exposed> to_invalidate_;  // the queue had no room yet
  // Exposures that are being invalidated. The peer may read their memory until
  // the request that invalidates the window has ended.
  std::deque<Exposed> invalidating_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_EXPOSER_H_
