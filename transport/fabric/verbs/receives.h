// The posted receives of a connection, and their buffers.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_RECEIVES_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_RECEIVES_H_

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "transport/fabric/verbs/handles.h"
#include "transport/fabric/verbs/pool.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Owns a shared receive queue and its buffers, which are leased from a pool.
// Used by one thread at a time.
class Receives {
 public:
  // Posts `count` buffers of `buffer_bytes`.
  static absl::StatusOr<std::unique_ptr<Receives>> Create(
      Api* api, ibv_pd* pd, Pool* pool, uint32_t count, uint32_t buffer_bytes);

  ibv_srq* queue() const { return queue_.get(); }
  // Returns the `bytes` that completion `wr_id` put into its buffer. Empty for
  // an id that was never posted. Valid until Post(wr_id).
  absl::Span<const uint8_t> Buffer(uint64_t wr_id, uint32_t bytes) const;
  // Lets the device fill the buffer of `wr_id` again.
  absl::Status Post(uint64_t wr_id);

 private:
  Receives(Api* api, std::shared_ptr<PoolLease> memory,
           SharedReceiveQueue queue, uint32_t count, uint32_t buffer_bytes);

  Api* const api_;
  const std::shared_ptr<PoolLease> memory_;
  const SharedReceiveQueue queue_;
  const uint32_t count_;
  const uint32_t buffer_bytes_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_RECEIVES_H_
