// A folder for files that end with the process.

#ifndef PENSTOCK_PS_TIER_SCRATCH_FOLDER_H_
#define PENSTOCK_PS_TIER_SCRATCH_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"

namespace penstock::ps {

// Is removed with all that is in it: by its destructor, or, if its process was
// killed, by the next that makes one beside it. A lock (flock) tells whether
// its process lives.
class ScratchFolder {
 public:
  // Makes a folder of its own in `parent`, which it makes if it is missing.
  // Nobody but its user can look into it.
  static absl::StatusOr<std::unique_ptr<ScratchFolder>> Make(
      const std::string& parent);
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;

  const std::string& path() const { return path_; }

 private:
  ScratchFolder(std::string path, base::UniqueFd lock)
      : path_(std::move(path)), lock_(std::move(lock)) {}

  const std::string path_;
  const base::UniqueFd lock_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TIER_SCRATCH_FOLDER_H_
