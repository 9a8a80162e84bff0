// Commands that move shards during training.

#ifndef PENSTOCK_PS_VIEWS_MOVING_H_
#define PENSTOCK_PS_VIEWS_MOVING_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/membership/membership.h"

namespace penstock::ps::views {

struct MovingOptions {
  // The connection to etcd, which must outlive the call. No other member of it
  // needs to be registered.
  membership::Membership* member = nullptr;
  // Limits the whole call.
  absl::Duration timeout = absl::Minutes(10);
  // The time for which a server must be missing in etcd until it counts as
  // gone. A busy server whose lease has expired registers again before that.
  absl::Duration gone_after = absl::Seconds(8);
  // The time without a change after which progress() receives what the call
  // waits for.
  absl::Duration quiet = absl::Seconds(10);
  // Returns true to end the call. May be empty.
  std::function<bool()> interrupted;
  // A function that receives a line for each step. May be empty.
  std::function<void(const std::string&)> progress;
};

// Each function sends a request to the servers through etcd, and blocks until
// the servers have carried it out. etcd stores a request until the command
// loses its right to move shards. The servers move one shard after another, and
// no shard has fewer copies meanwhile. `server` is a name or an address. Errors
// of all functions, which name the remedy:
//
//   NOT_FOUND            no such server is registered
//   FAILED_PRECONDITION  the servers have no replicas; too few servers would be
//                        left; or another command moves shards
//   UNAVAILABLE          etcd is unreachable at the beginning
//   DEADLINE_EXCEEDED    with what was waited for
//   CANCELLED            interrupted
//
// After an error, the servers stop moving shards, and each shard has all its
// copies.

// Takes all replicas off a server, so that it may be stopped. The server gets
// no other replicas until it is restarted, or AddServer() is called. Until
// then, a training without a view cannot begin. Waits, up to the timeout, while
// too few other servers are alive. After an error, the message says if the
// server has the last copy of a shard.
absl::Status DrainServer(const MovingOptions& options,
                         const std::string& server);

// Moves all shards back to their own servers, if these are alive. Calls
// progress() for each shard that stays elsewhere.
absl::Status Rebalance(const MovingOptions& options);

// Lets a drained server take part again, or replaces a server that is gone for
// good by a new server. `instead_of` is the address of the replaced server, or
// empty if only one is gone. Returns once all shards have all their copies.
// Fails if the replaced server has the last copy of a shard.
absl::Status AddServer(const MovingOptions& options, const std::string& server,
                       const std::string& instead_of);

}  // namespace penstock::ps::views

#endif  // PENSTOCK_PS_VIEWS_MOVING_H_
