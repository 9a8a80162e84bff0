// Messages that this side has announced: exposed until the peer releases them.

#ifndef PENSTOCK_TRANSPORT_SESSION_EXPOSURES_H_
#define PENSTOCK_TRANSPORT_SESSION_EXPOSURES_H_

#include <cstdint>
#include <unordered_map>

#include "absl/types/optional.h"
#include "transport/fabric/fabric.h"
#include "transport/memory/bytes.h"
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
    uint64_t begun_ns = 0;  // 0: its release is not timed
  };

  // Both outlive it. Charges `budget` for each message.
  Exposures(fabric::Endpoint* lifeline, Budget* budget)
      : lifeline_(lifeline), budget_(budget) {}

  // Exposes a message of `stream` on the lifeline, and on `fast_path` unless
  // that is null: a path may be lost before the peer has read. `epoch` names
  // the fast path. With `push` the lifeline will push it, and Push() is to
  // follow. Returns what the peer is to be told; without regions the message
  // could not be exposed, and is not kept.
  wire::Announce Add(uint32_t stream, const memory::Payload& message,
                     fabric::Endpoint* fast_path, uint32_t epoch, bool push);
  // It must be there. Valid until the next call.
  Exposed* Find(uint64_t id) { return &exposed_.find(id)->second; }
  // Withdraws the message. Nothing: there is none of this id.
  absl::optional<Exposed> Release(uint64_t id);

  // What is exposed there needs no withdrawal any more.
  void LoseFastPath();
  // The endpoints are about to go, and with them all that is exposed.
  void Clear() { exposed_.clear(); }
  bool empty() const { return exposed_.empty(); }

 private:
  fabric::Endpoint* const lifeline_;
  Budget* const budget_;
  uint64_t next_id_ = 1;
  std::unordered_map<uint64_t, Exposed> exposed_;
};

}  // namespace session
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_SESSION_EXPOSURES_H_
