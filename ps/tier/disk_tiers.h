// Stores rows of sparse tables on a local disk with RocksDB.

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
  // The parent folder, created if missing. Several servers may share it: each
  // makes its own folder in it, and removes the folders of killed servers.
  std::string folder;
  // Limits the bytes of rows; 0 means that only the disk's space limits them.
  // RocksDB uses twice this limit, and temporarily more, because it removes old
  // rows later.
  uint64_t max_bytes = 0;
  // Limits the bytes of memory for all tables. Half is for the block cache,
  // half for rows that are not written yet.
  size_t memory_bytes = size_t{128} << 20;
  // Limits the time for which a Put() waits for a slow or stuck disk. One shard
  // of a table is blocked meanwhile.
  absl::Duration longest_stall = absl::Seconds(30);
};

// One database for all tables of a server. While the disk is full or failing,
// Put()s fail; they succeed again once the disk accepts writes. Must outlive
// its tiers. Thread-safe, as its tiers are.
class DiskTiers {
 public:
  // Opens the database. Errors name the folder and the remedy. `calls` must
  // outlive the database.
  static absl::StatusOr<std::unique_ptr<DiskTiers>> Open(
      const DiskOptions& options, DiskCalls* calls = DiskCalls::Kernel());
  virtual ~DiskTiers() = default;

  // Returns an empty tier for one table. Destroying the tier removes its rows.
  virtual std::unique_ptr<sparse::Tier> NewTier() = 0;

  // Returns the bytes of all rows.
  virtual uint64_t bytes() const = 0;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_DISK_TIERS_H_
