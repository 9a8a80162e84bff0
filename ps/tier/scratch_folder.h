// A folder for files that must not outlive the process.

#ifndef PENSTOCK_PS_TIER_SCRATCH_FOLDER_H_
#define PENSTOCK_PS_TIER_SCRATCH_FOLDER_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"

namespace penstock::ps {

// A folder that the destructor removes, with its contents. If the process was
// killed, the next Make() with the same parent removes the folder. A lock
// (flock) on the folder shows that its process is alive.
class ScratchFolder {
 public:
  // Makes a new folder in `parent`, which is created if missing. Only the
  // process's user can access the folder.
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
