// The names of checkpoints and of their files. All names are made from numbers:
// no part of a name comes from a user or a file.

#ifndef PENSTOCK_PS_CHECKPOINT_NAMES_H_
#define PENSTOCK_PS_CHECKPOINT_NAMES_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/types/optional.h"

namespace penstock::ps::checkpoint {

// The name of the manifest. A folder with a file of this name is a checkpoint.
constexpr char kManifestName[] = "manifest";
// The lock file in the root. The repository that writes to the root holds the
// lock.
constexpr char kLockName[] = "lock";
// The list of checkpoints in the root, and its name before the final rename.
constexpr char kIndexName[] = "index";
constexpr char kNewIndexName[] = "index.new";

std::string StepFolder(uint64_t step);  // step-0000001234
absl::optional<uint64_t> ParseStepFolder(absl::string_view name);
// Returns the name of the folder of a checkpoint that was set aside. `number`
// distinguishes such checkpoints of one step. No repository lists, reads or
// removes such a folder.
std::string AsideFolder(uint64_t step, int number);  // aside-0000001234-1
bool IsAsideFolder(absl::string_view name);
std::string ManifestPath(uint64_t step);
std::string NewManifestPath(uint64_t step, uint64_t id);  // before its rename
std::string ShardName(uint32_t shard, uint64_t id);
std::string ShardPath(uint64_t step, uint32_t shard, uint64_t id);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_NAMES_H_
