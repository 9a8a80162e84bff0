// Commands that move shards while a training goes on.

#ifndef PENSTOCK_PS_VIEWS_MOVING_H_
#define PENSTOCK_PS_VIEWS_MOVING_H_

#include <functional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/membership/membership.h"

namespace penstock::ps::views {

struct MovingOptions {
  // Must outlive the call. No other member needs to be registered.
  membership::Membership* member = nullptr;
  // Limits the whole call.
  absl::Duration timeout = absl::Minutes(10);
  // The time for which a server must be missing in etcd until it counts as
  // gone. A server that etcd forgot under load registers again sooner.
  absl::Duration gone_after = absl::Seconds(8);
  // Returns true to end the call. May be empty.
  std::function<bool()> interrupted;
  // A function that receives a line for each step. May be empty.
  std::function<void(const std::string&)> progress;
};

// Each function asks the servers by etcd, and blocks until they have done it.
// etcd keeps a request as long as the command has its right to move shards.
// The servers move one shard after another, and shards never have fewer copies
// meanwhile. `server` is a name or an address. Errors of all functions, which
// name the remedy:
//
//   NOT_FOUND            no such server is registered
//   FAILED_PRECONDITION  the servers have no replicas; too few servers would be
//                        left; or another command moves shards
//   UNAVAILABLE          etcd is away at the beginning
//   DEADLINE_EXCEEDED    with what was waited for
//   CANCELLED            interrupted
//
// After an error, the servers stop moving shards. Each shard has all its
// copies.

// Takes all replicas off a server, which may then be stopped. The server gets
// no others until it is started again, or AddServer() is called. Before that, a
// training that has no view yet gets none. Waits, up to
// the timeout, while too few other servers live. After an error, the message
// says so if the server has the last copy of a shard.
absl::Status DrainServer(const MovingOptions& options,
                         const std::string& server);

// Moves all shards back to their own servers, if these are alive. Calls
// progress() for the other shards.
absl::Status Rebalance(const MovingOptions& options);

// Lets a server take part that was drained, or gives a new one the place of a
// server that is gone for good: `instead_of` is its address, or empty if only
// one is gone. Returns once all shards have all their copies. Refuses the place
// of a server with the last copy of a shard.
absl::Status AddServer(const MovingOptions& options, const std::string& server,
                       const std::string& instead_of);

}  // namespace penstock::ps::views

#endif  // PENSTOCK_PS_VIEWS_MOVING_H_
