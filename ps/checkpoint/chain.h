// A checkpoint and its bases.

#ifndef PENSTOCK_PS_CHECKPOINT_CHAIN_H_
#define PENSTOCK_PS_CHECKPOINT_CHAIN_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ps/checkpoint/files.h"
#include "ps/checkpoint/format.h"
#include "ps/checkpoint/manifest.h"

namespace penstock::ps::checkpoint {

// One checkpoint of a chain, and the footers of its shards.
struct Link {
  Manifest manifest;
  std::vector<Footer> footers;  // by shard
};

// A checkpoint and its bases, back to a full checkpoint. All links have the
// same tables in the same order.
struct Chain {
  std::vector<Link> links;

  const Manifest& newest() const { return links.front().manifest; }
  const Model& model() const { return newest().model; }
};

// Reads the manifests of the chain of the checkpoint of `step`, but no shards.
// Returns NOT_FOUND if the checkpoint is missing, DATA_LOSS if the chain is
// broken, FAILED_PRECONDITION if the format is newer.
absl::StatusOr<Chain> ReadManifests(Files* files, uint64_t step);

// Reads the manifests and the footers. Checks that all shards are present, have
// their sizes, and are complete for a restore. Reads no blocks: a restore
// checks the blocks that it takes, and Verify() checks all blocks.
absl::StatusOr<Chain> OpenChain(Files* files, uint64_t step);

// Returns OK if both models have the same tables in the same order, which a
// chain requires. Otherwise returns FAILED_PRECONDITION with the difference.
absl::Status CheckSameTables(const Model& base, const Model& model);

// Checks the rows in `footers`. Returns DATA_LOSS if a row of a dense table
// occurs twice. In a full checkpoint, also returns DATA_LOSS unless `footers`
// have every dense row and a part of every sparse table.
absl::Status CheckComplete(const Manifest& manifest,
                           const std::vector<Footer>& footers);

// Returns the steps of all checkpoints, the newest first. Includes folders with
// a damaged manifest, and files that have the name of a step's folder.
absl::StatusOr<std::vector<uint64_t>> ListSteps(Files* files);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_CHAIN_H_
