// Reads the state that a keeper of the views needs from etcd's keys.

#ifndef PENSTOCK_PS_VIEWS_VIEW_WATCH_H_
#define PENSTOCK_PS_VIEWS_VIEW_WATCH_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/optional.h"
#include "ps/etcd/copy.h"
#include "ps/membership/agreements.h"
#include "ps/replication/moves.h"
#include "ps/replication/view.h"

namespace penstock::ps::views {

// The servers that are registered, in order.
struct Registered {
  std::vector<replication::ReplicaId> live;
  std::vector<replication::ReplicaId> strangers;
  bool are_all = false;  // no server of the training is missing
};

// Returns the registered servers. `known` has the addresses of the servers of
// the training; other servers go into Registered::strangers. If `known` is
// empty, all servers belong to the training. Returns FAILED_PRECONDITION, which
// names the remedy, if the servers disagree on a flag, or if a key describes no
// server.
absl::StatusOr<Registered> ReadRegistered(
    const etcd::Values& values, const std::string& prefix,
    const std::vector<std::string>& known = {});

// Returns the operators' requests to move shards.
absl::StatusOr<replication::MoveRequests> ReadMoveRequests(
    const etcd::Values& values, const std::string& prefix,
    const std::vector<std::string>& servers);

// The newest view of a training. Not thread-safe.
class NewestView {
 public:
  // Reads the view from etcd's values, if they have one. Otherwise, or after an
  // error, the previous view stays. Returns an error, which names the remedy:
  //
  //   DATA_LOSS         the view goes back, or has changed
  //   INVALID_ARGUMENT  the bytes are no view
  absl::Status Take(const etcd::Values& values, const std::string& prefix);

  const absl::optional<replication::View>& view() const { return view_; }
  // Returns the addresses of all servers, in the order of the shards; empty
  // before the first view.
  const std::vector<std::string>& servers() const { return servers_; }

 private:
  membership::NewestView newest_;
  absl::optional<replication::View> view_;
  std::vector<std::string> servers_;
};

}  // namespace penstock::ps::views

#endif  // PENSTOCK_PS_VIEWS_VIEW_WATCH_H_
