// Decides which checkpoints of a root are old, and counts their bytes.

#ifndef PENSTOCK_PS_CHECKPOINT_RETENTION_H_
#define PENSTOCK_PS_CHECKPOINT_RETENTION_H_

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "absl/status/statusor.h"
#include "ps/checkpoint/chain.h"
#include "ps/checkpoint/files.h"

namespace penstock::ps::checkpoint {

// Adds the steps of all checkpoints of the chain to `steps`.
void AddSteps(const Chain& chain, std::set<uint64_t>* steps);

// Returns those of `steps`, the newest first, that may be removed, in this
// order. Keeps:
//   - the newest `keep` good checkpoints, one at least, and their bases
//   - if one of these is incremental, the newest good checkpoint of another
//     chain, and its bases
//   - damaged checkpoints that are newer than the oldest of the newest `keep`
//   - `needed`
// Returns no steps if fewer than `keep` are good. Returns the error of a
// checkpoint that is unreadable and may be good.
absl::StatusOr<std::vector<uint64_t>> ListOld(
    Files* files, const std::vector<uint64_t>& steps, size_t keep,
    std::set<uint64_t> needed);

struct Held {
  size_t checkpoints = 0;
  uint64_t bytes = 0;
  size_t aside = 0;  // folders of checkpoints that were set aside
  uint64_t aside_bytes = 0;
};

// Counts the checkpoints of a root and their bytes. Leaves out checkpoints
// whose manifest is unreadable, and files that cannot be opened.
absl::StatusOr<Held> SizeOf(Files* files);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_RETENTION_H_
