#include "ps/tier/scratch_folder.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace penstock::ps {
namespace {

namespace fs = std::filesystem;
using base::UniqueFd;

constexpr char kPrefix[] = "penstock-rows-";
constexpr char kLock[] = "/lock";
constexpr int kAttempts = 3;

absl::Status Error(int error, const std::string& what) {
  return absl::Status(
      absl::ErrnoToStatusCode(error),
      absl::StrCat("rows on disk: ", what, ": ",
                   std::error_code(error, std::generic_category()).message()));
}

// Opens and locks the lock file of a folder. Fails if another process holds the
// lock, or if there is no lock file and none can be made.
absl::StatusOr<UniqueFd> Lock(const std::string& folder, int flags) {
  const std::string path = folder + kLock;
  UniqueFd lock(open(path.c_str(), flags | O_RDWR | O_CLOEXEC, 0600));
  if (lock.valid() && flock(lock.get(), LOCK_EX | LOCK_NB) == 0) return lock;
  return Error(errno, absl::StrCat("lock ", path));
}

// Removes a folder, and its lock file last. If the removal is interrupted, the
// next process can complete it.
void Remove(const fs::path& folder) {
  std::error_code error;
  fs::directory_iterator entry(folder, error);
  while (!error && entry != fs::directory_iterator()) {
    const fs::path path = entry->path();
    if (path != folder.string() + kLock) fs::remove_all(path, error);
    if (!error) entry.increment(error);
  }
  if (!error) fs::remove_all(folder, error);
}

// Removes the folders of ended processes. Skips a folder without a lock, which
// may be under construction.
void RemoveLeftOver(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator entry(parent, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code ignored;
    if (!absl::StartsWith(entry->path().filename().string(), kPrefix) ||
        !entry->is_directory(ignored) || entry->is_symlink(ignored)) {
      continue;
    }
    const auto lock = Lock(entry->path().string(), O_NOFOLLOW);
    if (lock.ok()) Remove(entry->path());
  }
}

}  // namespace

absl::StatusOr<std::unique_ptr<ScratchFolder>> ScratchFolder::Make(
    const std::string& parent) {
  std::error_code error;
  fs::create_directories(parent, error);
  if (error) return Error(error.value(), absl::StrCat("make ", parent));
  RemoveLeftOver(parent);
  absl::Status why;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    std::string path = absl::StrCat(parent, "/", kPrefix, "XXXXXX");
    if (mkdtemp(path.data()) == nullptr) {
      return Error(errno, absl::StrCat("make a folder in ", parent));
    }
    // Lock the new folder. The lock fails if another process has locked the
    // folder in order to remove it.
    auto lock = Lock(path, O_CREAT);
    if (lock.ok()) {
      return std::unique_ptr<ScratchFolder>(
          new ScratchFolder(std::move(path), *std::move(lock)));
    }
    unlink((path + kLock).c_str());
    rmdir(path.c_str());
    why = lock.status();
  }
  return absl::Status(why.code(), absl::StrCat(why.message(),
                                               "; give a folder of a local "
                                               "disk"));
}

ScratchFolder::~ScratchFolder() { Remove(path_); }

}  // namespace penstock::ps
