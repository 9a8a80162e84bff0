// Stores the list of the checkpoints in a root, by which lost checkpoints are
// noticed.
//
// The file "index" is text: a line "penstock checkpoints 1", a line with each
// step, and a line "end CHECKSUM". The checksum covers the lines before.

#ifndef PENSTOCK_PS_CHECKPOINT_INDEX_H_
#define PENSTOCK_PS_CHECKPOINT_INDEX_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "ps/checkpoint/files.h"

namespace penstock::ps::checkpoint {

// Limits the size of the index that a reader accepts, in bytes. Enough for a
// million checkpoints.
constexpr uint64_t kMaxIndexBytes = 16 << 20;

std::string EncodeIndex(const std::vector<uint64_t>& steps);
// Returns the steps of an encoded index, or DATA_LOSS if the bytes are no
// index.
absl::StatusOr<std::vector<uint64_t>> DecodeIndex(absl::string_view bytes);

// Replaces the list in the index by `steps`, and makes it durable. Call after a
// checkpoint was committed, and before a checkpoint is removed. A crash then
// makes no checkpoint look lost.
absl::Status WriteIndex(Files* files, const std::vector<uint64_t>& steps);

// Removes the index, durably. ListLost() then returns no steps until an index
// is written again, even if manifests are missing.
absl::Status RemoveIndex(Files* files);

// Returns the steps in the index that have no manifest, the newest first. These
// checkpoints were committed, and their manifests were removed later. Returns
// no steps if there is no index, as in folders of earlier releases, and
// DATA_LOSS if the index is damaged.
absl::StatusOr<std::vector<uint64_t>> ListLost(Files* files);

// Returns OK if the root has a checkpoint, or if none was lost. Returns
// FAILED_PRECONDITION, with the remedies, if the root has lost all of its
// checkpoints. `folder` is the name of the root for messages.
absl::Status CheckNotAllLost(Files* files, absl::string_view folder);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_INDEX_H_
