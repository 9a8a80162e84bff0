// The state of a server at one point in time, and the names of cuts.

#ifndef PENSTOCK_PS_SERVER_MODEL_SNAPSHOT_H_
#define PENSTOCK_PS_SERVER_MODEL_SNAPSHOT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "ps/consistency/membership.h"
#include "ps/dense/dense_part.h"
#include "ps/server/report.h"
#include "ps/server/tables.h"
#include "ps/sparse/snapshot.h"

namespace penstock::ps {

// The snapshot options of each sparse table, by index in LocalModel::rows(). An
// empty list means all rows of all tables.
using SparseSnapshotOptions = std::vector<sparse::SnapshotOptions>;

// The state of a training at a cut.
struct CutState {
  std::vector<RankClock> clocks;
  // The step of the synchronous tables; nullopt if the model has none.
  absl::optional<uint64_t> version;
  uint64_t floor = 0;  // see Membership
};

// The values of a server between two steps. Destroy the snapshot before the
// tables. Any thread may destroy it.
struct ModelSnapshot {
  struct Sparse {
    uint64_t steps = 0;
    std::unique_ptr<sparse::Snapshot> rows;
  };

  std::vector<DensePart::Snapshot> parts;  // by place in Tables::parts()
  std::vector<Sparse> tables;              // by place in LocalModel::rows()
  CutState cut;
};

// The name of a checkpoint of all servers.
struct CutId {
  uint64_t step = 0;
  uint64_t id = 0;   // differs between two checkpoints of one step
  uint64_t run = 0;  // wrote the checkpoint; 0: unknown; not compared
  // The runs that `run` continues, the oldest first. Comparisons of cuts ignore
  // them.
  std::vector<uint64_t> earlier_runs;
};
inline bool operator==(const CutId& a, const CutId& b) {
  return a.step == b.step && a.id == b.id;
}
inline bool operator!=(const CutId& a, const CutId& b) { return !(a == b); }

// The members of a server, and their last pushes.
struct MembersImage {
  MembershipImage membership;
  // The last counted push of each rank.
  std::vector<RankClock> counted;
  PushCounts counts;
};

// The state that a server starts with, except for the values of its tables.
struct RestoredModel {
  std::vector<RankClock> clocks;
  // The step of the synchronous tables, and the floor. nullopt if an earlier
  // release wrote the checkpoint.
  absl::optional<uint64_t> version;
  absl::optional<uint64_t> floor;
  // The members to continue with; nullopt: all workers have to join.
  absl::optional<MembersImage> members;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SERVER_MODEL_SNAPSHOT_H_
