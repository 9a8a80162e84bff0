// Lets the ranks of a process group find each other through a key-value store.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_RENDEZVOUS_H_
#define PENSTOCK_FRAMEWORKS_TORCH_RENDEZVOUS_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "collectives/host/pool.h"
#include "frameworks/torch/place.h"

namespace penstock {
namespace pytorch {

// A store that all ranks share, such as c10d's.
class Board {
 public:
  virtual ~Board() = default;
  virtual absl::Status Set(const std::string& key,
                           const std::string& value) = 0;
  // Increases the counter of that name by 1, and returns the new value.
  virtual absl::StatusOr<int64_t> Count(const std::string& key) = 0;
  // Waits until some rank has set the key.
  virtual absl::StatusOr<std::string> Get(const std::string& key,
                                          absl::Duration timeout) = 0;
};

struct FormedGroup {
  std::unique_ptr<collectives::Group> group;
  // The numeric address at which the other ranks reach this rank.
  std::string address;
  // The memory of this rank that all other ranks read in place. Null unless the
  // group is on one host, and options.pool_bytes is not 0.
  std::shared_ptr<collectives::Pool> pool;
};

// Forms a group of options.ranks ranks: a HostGroup if they are on one host,
// and otherwise a HierarchicalGroup. All ranks call this function with their
// places. The options.pool_bytes of rank 0 apply to all. If the ranks cannot
// form a group, returns an error with the reason on all ranks. Returns the
// board's error if the board fails. Blocks for at most options.timeout for each
// rank. The ranks may form several groups by one board, one after another, if
// all ranks make the same number of attempts.
absl::StatusOr<FormedGroup> FormGroup(
    Board* board, const Place& place, int rank,
    const collectives::HostGroupOptions& options);

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_RENDEZVOUS_H_
