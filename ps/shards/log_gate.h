// Holds back pushes in front of a log.

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

// Keeps pushes behind the cut of a checkpoint out of a log. No replica has such
// a push, so all replicas are at the cut at the same place of the log, and no
// entry waits for another one.
//
// Pure: the caller passes the time. Not thread-safe.
class LogGate {
 public:
  // Stop all pushes, or those behind a cut, until `ends`. Return a number that
  // differs from that of the holds before. The pushes of an earlier hold stay.
  uint64_t Close(absl::Time ends);
  uint64_t OpenUpTo(CutPoint cut, absl::Time ends);
  // Ends a hold, unless a later one has taken its place.
  void Open(uint64_t hold);
  // Returns true if no later hold has taken the place of `hold`.
  bool IsPresent(uint64_t hold) const { return hold == hold_; }

  uint64_t hold() const { return hold_; }
  // Returns the cut of OpenUpTo(), or null.
  const CutPoint* cut() const { return gate_.cut(); }

  bool LetsThrough(const PushId& push) const { return gate_.LetsThrough(push); }
  // Keeps what goes on with a push that was stopped. `ticket` is of its call,
  // which holds `bytes` of gradients.
  void Keep(uint64_t ticket, const PushId& push, size_t bytes,
            std::function<void()> go_on);
  void Forget(uint64_t ticket);
  // Returns the bytes of all kept pushes.
  size_t bytes() const { return bytes_; }
  // Forgets all pushes that are stopped, and returns their tickets: pushes in
  // the cut need the room.
  std::vector<uint64_t> GiveUp();
  // Ends a hold whose time is over. Removes and returns what goes on.
  std::vector<std::function<void()>> TakeDue(absl::Time now);
  // Opens the gate, and forgets all pushes.
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
  // By ticket, and thus in the order of the calls.
  std::map<uint64_t, Kept> kept_;
  size_t bytes_ = 0;  // of kept_
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_LOG_GATE_H_
