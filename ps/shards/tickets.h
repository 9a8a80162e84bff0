// The calls of workers that wait for answers at a primary.

#ifndef PENSTOCK_PS_SHARDS_TICKETS_H_
#define PENSTOCK_PS_SHARDS_TICKETS_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "ps/server/calls.h"
#include "ps/server/server.h"

namespace penstock::ps {

// The unanswered calls, and the work that waits until an entry was fed or until
// the primary may answer. A caller that removes a call from this object must
// answer the call.
//
// Not thread-safe. Calls no callback.
class Tickets {
 public:
  // A worker's call. Exactly one callback is set.
  struct Ticket {
    Calls::PushCallback push;
    Calls::PullCallback pull;
    Calls::JoinCallback join;
    std::shared_ptr<Server> server;  // the server that holds a pull
    uint64_t inner = 0;              // the pull's ticket at `server`

    // Answers with an error, and ends the pull at the server.
    void End(const absl::Status& why) const;
  };
  // Work that waits. Without `is_answer`, it waits until entry `fed` was fed;
  // with `is_answer`, until the primary may answer.
  struct Parked {
    uint64_t fed = 0;
    bool is_answer = false;
    uint64_t ticket = 0;  // the ticket of the call
    std::function<void()> go;
  };

  uint64_t AddPush(Calls::PushCallback callback);
  uint64_t AddPull(Calls::PullCallback callback);
  uint64_t AddJoin(Calls::JoinCallback callback);
  // Removes and returns a call. Returns nullopt if the call was already
  // answered.
  absl::optional<Ticket> Take(uint64_t ticket);
  // Records the server at which a pull waits. Returns false if the pull was
  // already answered.
  bool SetInner(uint64_t ticket, std::shared_ptr<Server> server,
                uint64_t inner);

  void Park(Parked work) { parked_.push_back(std::move(work)); }
  // Drops the work of a call, because the work may hold gradients.
  void ForgetParked(uint64_t ticket);
  // Removes and returns the work that is due.
  std::vector<Parked> TakeDue(uint64_t fed, bool may_answer);
  // Removes and returns all calls. Drops all work.
  std::vector<Ticket> TakeAll();

 private:
  uint64_t Add(Ticket ticket);

  std::map<uint64_t, Ticket> tickets_;
  uint64_t next_ = 1;
  std::deque<Parked> parked_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_TICKETS_H_
