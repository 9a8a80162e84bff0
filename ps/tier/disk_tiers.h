// Rows of sparse tables on a local disk, by RocksDB.

#ifndef PENSTOCK_PS_TIER_DISK_TIERS_H_
#define PENSTOCK_PS_TIER_DISK_TIERS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "ps/sparse/tier.h"
#include "ps/tier/disk_calls.h"

namespace penstock::ps {

struct DiskOptions {
  // Is made, if it is missing. Any number of servers may share it: each makes a
  // folder of its own there, and removes those that killed servers have left.
  std::string folder;
  // Of rows; above it they have no room. RocksDB takes as much again, and for a
  // while more, since it removes rows later. 0: whatever the disk has.
  uint64_t max_bytes = 0;
  // Memory for all tables: blocks that were read, and rows that wait to be
  // written, half of it each.
  size_t memory_bytes = size_t{128} << 20;
  // A Put() waits so long at most for a disk that is slow, or does not answer.
  // Meanwhile it holds up a shard of a table.
  absl::Duration longest_stall = absl::Seconds(30);
};

// One database for all tables of a server. A full or failing disk costs refused
// Put()s; they succeed again once the disk takes writes. Thread-safe; so are
// its tiers, which it outlives.
class DiskTiers {
 public:
  // Errors name the folder and the remedy. `calls` outlives the database.
  static absl::StatusOr<std::unique_ptr<DiskTiers>> Open(
      const DiskOptions& options, DiskCalls* calls = DiskCalls::Kernel());
  virtual ~DiskTiers() = default;

  // Returns an empty tier, of no other table. Its rows go with it.
  virtual std::unique_ptr<sparse::Tier> NewTier() = 0;

  // Bytes of all rows.
  virtual uint64_t bytes() const = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_DISK_TIERS_H_
