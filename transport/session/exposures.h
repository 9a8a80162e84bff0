// Messages that this side has announced: exposed until the peer releases them.

#ifndef PENSTOCK_TRANSPORT_SESSION_EXPOSURES_H_
#define PENSTOCK_TRANSPORT_SESSION_EXPOSURES_H_

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "absl/types/optional.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
#include "transport/metrics/labels.h"
#include "transport/session/budget.h"
#include "transport/wire/announce.h"

namespace penstock {
namespace session {

// The messages of one session that the peer has not released. Not thread-safe.
class Exposures {
 public:
  struct Exposed {
    uint32_t stream = 0;
    fabric::Endpoint* fast_path = nullptr;  // null: lifeline only
    fabric::RemoteRegion fast;
    fabric::RemoteRegion lifeline;
    bool is_pushed = false;  // over the lifeline
    uint64_t length = 0;
    uint64_t parts = 0;                              // charged to the budget
    uint64_t begun_ns = 0;                           // 0: release not timed
    uint64_t announced_ns = 0;                       // 0: no clock
    metrics::Fabric fabric = metrics::Fabric::kTcp;  // announced over
  };

  // Refers to `lifeline` and `budget`, which must outlive this object. Charges
  // `budget` for the parts of each message. The protocol `version` limits the
  // number of parts.
  Exposures(fabric::Endpoint* lifeline, Budget* budget, uint8_t version)
      : lifeline_(lifeline), budget_(budget), version_(version) {}

  // Exposes a message of `stream` on the lifeline. If `fast_path` is not null,
  // also exposes the message there; the lifeline serves the message if the fast
  // path is lost. `epoch` is the fast path's number. If `may_push`, sets
  // is_pushed of a message that is exposed only on the lifeline. The caller
  // then calls Push() of the lifeline after sending the announcement. Returns
  // the announcement. If exposing fails, the announcement has no regions, and
  // nothing stays exposed.
  wire::Announce Add(uint32_t stream, const memory::Payload& message,
                     fabric::Endpoint* fast_path, uint32_t epoch,
                     bool may_push);
  // Returns the exposed message, which must exist. The pointer is valid until
  // the next call.
  Exposed* Find(uint64_t id) { return &exposed_.find(id)->second; }
  // Withdraws the message, and returns it. Returns nullopt if `id` is unknown.
  absl::optional<Exposed> Release(uint64_t id);

  // Forgets the fast path, and the exposures on it.
  void LoseFastPath();
  // Forgets all messages. Call before the endpoints are destroyed.
  void Clear() { exposed_.clear(); }
  bool empty() const { return exposed_.empty(); }
  size_t size() const { return exposed_.size(); }

 private:
  fabric::Endpoint* const lifeline_;
  Budget* const budget_;
  const uint8_t version_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, Exposed> exposed_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_EXPOSURES_H_
