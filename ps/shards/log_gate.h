// Delays pushes before they enter a log.

#ifndef PENSTOCK_PS_SHARDS_LOG_GATE_H_
#define PENSTOCK_PS_SHARDS_LOG_GATE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "absl/time/time.h"
#include "ps/consistency/cut.h"

namespace penstock::ps {

// A gate in front of a log, which stops pushes after the cut of a checkpoint.
// No such push reaches a replica. All replicas therefore reach the cut at the
// same entry of the log, and no entry of the log waits for another entry.
//
// Pure: the caller passes the time. Not thread-safe.
class LogGate {
 public:
  // Close() stops all pushes until `ends`. OpenUpTo() stops only the pushes
  // after a cut. Both begin a new hold, and return its number. A push that an
  // earlier hold has stopped stays stopped.
  uint64_t Close(absl::Time ends);
  uint64_t OpenUpTo(CutPoint cut, absl::Time ends);
  // Ends the hold with this number. Does nothing if a later hold has replaced
  // that hold.
  void Open(uint64_t hold);
  // Returns true if no later hold has replaced `hold`.
  bool IsPresent(uint64_t hold) const { return hold == hold_; }

  uint64_t hold() const { return hold_; }
  // Returns the cut that OpenUpTo() has set, or null.
  const CutPoint* cut() const { return gate_.cut(); }

  bool LetsThrough(const PushId& push) const { return gate_.LetsThrough(push); }
  // Stores the continuation of a push that was stopped. `ticket` identifies the
  // push's call, which holds `bytes` of gradients.
  void Keep(uint64_t ticket, const PushId& push, size_t bytes,
            std::function<void()> go_on);
  void Forget(uint64_t ticket);
  // Returns the bytes of all stored pushes.
  size_t bytes() const { return bytes_; }
  // Removes all stopped pushes, because pushes before the cut need the room.
  // Returns their tickets.
  std::vector<uint64_t> GiveUp();
  // Ends an expired hold. Removes and returns the continuations of pushes that
  // may now pass.
  std::vector<std::function<void()>> TakeDue(absl::Time now);
  // Opens the gate, and drops all continuations.
  void Clear();

 private:
  struct Kept {
    PushId push;
    size_t bytes = 0;
    std::function<void()> go_on;
  };

  CutGate gate_;
  uint64_t hold_ = 0;
  absl::Time ends_ = absl::InfiniteFuture();
  // The continuations by ticket, which is the order of the calls.
  std::map<uint64_t, Kept> kept_;
  size_t bytes_ = 0;  // the gradients of all pushes in kept_
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_LOG_GATE_H_
