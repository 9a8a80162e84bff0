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

// Not thread-safe.
class Exposures {
 public:
  struct Exposed {
    uint32_t stream = 0;
    fabric::Endpoint* fast_path = nullptr;  // null: not exposed there
    fabric::RemoteRegion fast;
    fabric::RemoteRegion lifeline;
    uint64_t length = 0;
    uint64_t parts = 0;         // as many as the budget was charged
    uint64_t begun_ns = 0;      // 0: its release is not measured
    uint64_t announced_ns = 0;  // 0: there is no clock
    metrics::Fabric fabric = metrics::Fabric::kTcp;  // it was announced over
  };

  // Both outlive it. Charges `budget` for the parts of each message. `version`
  // is that of the protocol, which says how many there may be.
  Exposures(fabric::Endpoint* lifeline, Budget* budget, uint8_t version)
      : lifeline_(lifeline), budget_(budget), version_(version) {}

  // Exposes a message of `stream` on the lifeline, and also on `fast_path`
  // unless that is null, as a path may be lost before the peer has read.
  // `epoch` names the fast path. With `push`, call Push() of the lifeline when
  // the peer has been told. Returns what to tell the peer; an announcement
  // without regions means that the message could not be exposed, and is not
  // kept.
  wire::Announce Add(uint32_t stream, const memory::Payload& message,
                     fabric::Endpoint* fast_path, uint32_t epoch, bool push);
  // The message must be there. Valid until the next call.
  Exposed* Find(uint64_t id) { return &exposed_.find(id)->second; }
  // Withdraws the message. Returns none where there is none of this id.
  absl::optional<Exposed> Release(uint64_t id);

  // Forgets what is exposed there: it goes with the path.
  void LoseFastPath();
  // Forgets all: the endpoints are about to go.
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
