// A command that moves shards, and its view of etcd.

#ifndef PENSTOCK_PS_VIEWS_MOVE_COMMAND_H_
#define PENSTOCK_PS_VIEWS_MOVE_COMMAND_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/etcd/mirror.h"
#include "ps/membership/membership.pb.h"
#include "ps/membership/registration.h"
#include "ps/replication/moves.h"
#include "ps/replication/view.h"
#include "ps/views/moving.h"
#include "ps/views/view_watch.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::views {

replication::ReplicaId IdOf(const membership::v1::Server& server);
// Returns "ps-0 (10.0.0.1:2222)".
std::string NameOf(const membership::v1::Server& server);
// Returns the server of a name or an address, or null.
const membership::v1::Server* Find(
    const std::vector<membership::v1::Server>& servers,
    const std::string& name);
bool HasAddress(const std::vector<std::string>& addresses,
                const std::string& address);

// The state of etcd at one moment.
struct Situation {
  std::vector<membership::v1::Server> registered;
  absl::optional<replication::View> view;
  std::vector<std::string> places;  // the addresses of the shards' own servers
  std::vector<replication::ReplicaId> live;  // live servers with a place
  replication::MoveRequests requests;
  size_t copies = 1;  // the number of copies for each shard
};

// Returns a shard whose only live copies are at `address`, or nullopt.
absl::optional<size_t> ShardWithoutOther(const Situation& now,
                                         const std::string& address);

// A command that moves shards. Has the right to move shards until the
// destructor. Not thread-safe.
class MoveCommand {
 public:
  explicit MoveCommand(const MovingOptions& options);

  // Waits for etcd, and claims the right to move shards.
  absl::Status Begin(membership::v1::Move::Kind kind);

  const Situation& now() const { return now_; }
  membership::Registry* registry() { return options_.member->registry(); }
  // Returns the condition of this command's writes: that it still has the
  // right.
  membership::Registry::Guard claim() const { return claim_->guard(); }
  // Returns true if now() is as new as etcd.
  bool SeesEtcd() const { return mirror_.status().ok(); }
  // Returns the registered server of a name or an address.
  absl::StatusOr<membership::v1::Server> Registered(
      const std::string& name) const;
  // Returns FAILED_PRECONDITION if shards have only one copy.
  absl::Status CheckReplicated() const;
  // Waits until `is_done` returns true. Calls `is_done` in each round, after
  // now() has changed. Returns the error of `is_done`, CANCELLED, or
  // DEADLINE_EXCEEDED. Returns ABORTED if another command has claimed the right
  // to move shards.
  absl::Status Await(const std::function<absl::StatusOr<bool>()>& is_done);
  // Makes a write. Repeats it if a server's write or a new lease of claim()
  // came first.
  absl::Status RetryWrite(const std::function<absl::Status()>& write) const;
  // Returns true if no shard has moved for a while, and no shard has to move.
  bool Rests();
  void Say(const std::string& line) const;

 private:
  absl::Status Read();
  bool IsLive(const replication::ReplicaId& id) const;
  // Returns true if a shard lacks copies, or is being moved.
  bool IsBusy() const;
  // Returns how many copies of each shard the usable servers permit.
  size_t CopiesNow() const;
  // Reports which shards have changed.
  void Report();
  // Reports what the command waits for, if that has not changed for a while.
  void ReportWait();
  // Returns a text that describes the work that the servers still have to do.
  std::string Waits() const;

  const MovingOptions options_;
  const absl::Time limit_;
  etcd::Mirror mirror_;
  NewestView newest_;
  Situation now_;
  absl::optional<replication::View> reported_;
  std::string waits_;  // the last result of Waits()
  absl::Time waits_since_ = base::SteadyNow();
  bool has_reported_wait_ = false;
  absl::Time last_busy_ = base::SteadyNow();
  std::unique_ptr<membership::Registration> claim_;
};

}  // namespace penstock::ps::views

#endif  // PENSTOCK_PS_VIEWS_MOVE_COMMAND_H_
