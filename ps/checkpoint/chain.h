// A checkpoint with those that it stands on.

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

// One checkpoint of a chain, with the footers of its shards.
struct Link {
  Manifest manifest;
  std::vector<Footer> footers;  // by shard
};

// The checkpoint that was asked for, its base, and so on to a full one. All of
// one model, whose tables are in the same order.
struct Chain {
  std::vector<Link> links;

  const Manifest& newest() const { return links.front().manifest; }
  const Model& model() const { return newest().model; }
};

// Reads the manifests of the chain that ends with the checkpoint of `step`, and
// no shards. Returns NOT_FOUND if there is no such checkpoint, DATA_LOSS if its
// chain is broken, FAILED_PRECONDITION if it is of a newer format.
absl::StatusOr<Chain> ReadManifests(Files* files, uint64_t step);

// Reads the manifests and the footers, and checks that all shards are there, of
// their size, and have together what a restore needs. Blocks are not read: a
// restore checks those that it takes, and Verify() all.
absl::StatusOr<Chain> OpenChain(Files* files, uint64_t step);

// Returns FAILED_PRECONDITION, with the difference, unless both have the same
// tables in the same order, as the checkpoints of a chain do.
absl::Status CheckSameTables(const Model& base, const Model& model);

// Returns DATA_LOSS unless `footers` are of all a checkpoint should have: no
// row of a dense table twice; in a full one every row of every dense table, and
// a part of every sparse one.
absl::Status CheckComplete(const Manifest& manifest,
                           const std::vector<Footer>& footers);

// Returns the steps whose folders have a manifest, good or bad, or are no
// folders, the newest first.
absl::StatusOr<std::vector<uint64_t>> ListSteps(Files* files);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_CHAIN_H_
