// The attempts of a listener that wait for a peer with the right token.

#ifndef PENSTOCK_TRANSPORT_FABRIC_AWAITED_TOKENS_H_
#define PENSTOCK_TRANSPORT_FABRIC_AWAITED_TOKENS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/time/time.h"
#include "transport/base/mutex.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/fabric.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {

// Stores attempts by name, and passes each attempt to one peer only. A name is
// the token itself, or is derived from the token. Calls callbacks on the event
// loop's thread, without locks. Thread-safe. May be destroyed before its
// attempts have ended: each attempt keeps its handle and its limit.
//
//   state    event               action                                next
//   -        Await()             keep it, start its limit              waiting
//   waiting  Take(its name)      give it to the caller                 taken
//   waiting  its handle goes     forget it                             -
//   waiting  the limit           forget it, DEADLINE_EXCEEDED          -
//   taken    the limit           DEADLINE_EXCEEDED, if it still pends  -
class AwaitedTokens : public std::enable_shared_from_this<AwaitedTokens> {
 public:
  // Creates an empty list. An attempt that does not end within `limit` finishes
  // with DEADLINE_EXCEEDED and the text `late`, even if it was taken.
  static std::shared_ptr<AwaitedTokens> Create(progress::EventLoop* loop,
                                               absl::Duration limit,
                                               std::string late);
  AwaitedTokens(const AwaitedTokens&) = delete;
  AwaitedTokens& operator=(const AwaitedTokens&) = delete;

  // Stores `attempt` until Take(`name`). Destroying the handle cancels and
  // forgets the attempt. In a forked child, destroying the handle cancels only
  // the child's copy. If another attempt with this name is pending, fails
  // `attempt` with ALREADY_EXISTS.
  std::unique_ptr<PendingConnect> Await(const std::string& name,
                                        std::shared_ptr<Attempt> attempt);

  // Returns true if a peer may have the attempt. Called under the lock.
  using Proof = std::function<bool(const Attempt&)>;
  // Removes and returns the pending attempt with this name. Returns null if
  // there is none. If `proof` returns false, returns null and keeps the
  // attempt.
  std::shared_ptr<Attempt> Take(const std::string& name,
                                const Proof& proof = nullptr);

 private:
  AwaitedTokens(progress::EventLoop* loop, absl::Duration limit,
                std::string late);
  // Stores `attempt` under `name`. Returns false if another pending attempt has
  // the name.
  bool Keep(const std::string& name, std::shared_ptr<Attempt> attempt);
  // Forgets `attempt`. Leaves any other attempt of that name.
  void Forget(const std::string& name, const Attempt* attempt);

  progress::EventLoop* const loop_;
  const absl::Duration limit_;
  const std::string late_;
  const uint32_t fork_count_;

  base::Mutex mu_;
  std::map<std::string, std::shared_ptr<Attempt>> waiting_ ABSL_GUARDED_BY(mu_);
};

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_AWAITED_TOKENS_H_
