// The calls of workers that wait at a primary.

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

// The calls that have no answer yet, and the work that waits until an entry was
// fed, or until the primary may answer. Whoever takes a call answers it.
//
// Not thread-safe. Calls no callback.
class Tickets {
 public:
  // A worker's call. One of the callbacks is set.
  struct Ticket {
    Calls::PushCallback push;
    Calls::PullCallback pull;
    Calls::JoinCallback join;
    std::shared_ptr<Server> server;  // of a pull
    uint64_t inner = 0;              // the server's ticket

    // Answers with an error, and ends the pull at the server.
    void End(const absl::Status& why) const;
  };
  // Work to do once entry `fed` was fed, or, if `is_answer`, once the primary
  // may answer.
  struct Parked {
    uint64_t fed = 0;
    bool is_answer = false;
    uint64_t ticket = 0;  // of the call
    std::function<void()> go;
  };

  uint64_t AddPush(Calls::PushCallback callback);
  uint64_t AddPull(Calls::PullCallback callback);
  uint64_t AddJoin(Calls::JoinCallback callback);
  // Removes and returns a call; nullopt if it has its answer.
  absl::optional<Ticket> Take(uint64_t ticket);
  // Records where a pull waits. Returns false if the call has its answer.
  bool SetInner(uint64_t ticket, std::shared_ptr<Server> server,
                uint64_t inner);

  void Park(Parked work) { parked_.push_back(std::move(work)); }
  // Forgets the work of a call, which may hold gradients.
  void ForgetParked(uint64_t ticket);
  // Removes and returns the work that is due.
  std::vector<Parked> TakeDue(uint64_t fed, bool may_answer);
  // Removes and returns all calls. Forgets all work.
  std::vector<Ticket> TakeAll();

 private:
  uint64_t Add(Ticket ticket);

  std::map<uint64_t, Ticket> tickets_;
  uint64_t next_ = 1;
  std::deque<Parked> parked_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_TICKETS_H_
