// Files of the operating system.

#ifndef PENSTOCK_PS_CHECKPOINT_POSIX_FILES_H_
#define PENSTOCK_PS_CHECKPOINT_POSIX_FILES_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "ps/checkpoint/files.h"

namespace penstock::ps::checkpoint {

// Opens the existing folder `root`, whose path may be a symbolic link. Creates
// files and folders with permissions for their owner only.
absl::StatusOr<std::unique_ptr<Files>> OpenFolder(const std::string& root);

}  // namespace penstock::ps::checkpoint

#endif  // PENSTOCK_PS_CHECKPOINT_POSIX_FILES_H_
