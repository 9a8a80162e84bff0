// The replicas of one process, as the keeper of the views sees them.

#ifndef PENSTOCK_PS_REPLICATION_VIEW_FOLLOWER_H_
#define PENSTOCK_PS_REPLICATION_VIEW_FOLLOWER_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "ps/replication/primary.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// Thread-safe. No call blocks.
class ViewFollower {
 public:
  // The requests of the primary of one shard.
  struct Request {
    uint32_t shard = 0;
    // The view in which the primary has this request.
    uint64_t view = 0;
    // True if the primary has begun. Until then, the primary may wait for the
    // answer of its predecessor, so the predecessor must not be dropped.
    bool has_begun = false;
    // Joiners that may become backups.
    std::vector<ReplicaId> complete;
    // Replicas to be dropped.
    std::vector<Primary::Complaint> overdue;
  };

  virtual ~ViewFollower() = default;

  virtual ReplicaId self() const = 0;
  // Returns the run of the values in the process's own shard.
  virtual absl::optional<uint64_t> run() const = 0;
  // Changes all replicas of this process to a view. Returns the error of
  // CheckView() or of Replica::OnView(); the replicas then stay in their
  // present view.
  virtual absl::Status OnView(const View& view) = 0;
  // Returns the requests of the shards whose primary is in this process.
  virtual std::vector<Request> Requests() = 0;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_VIEW_FOLLOWER_H_
