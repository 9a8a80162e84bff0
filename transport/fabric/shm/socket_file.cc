#include "transport/fabric/shm/socket_file.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"
#include "transport/fabric/shm/address.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// A socket refuses callers between bind() and listen() too: a younger one may
// yet come to life.
constexpr time_t kStaleAfterSeconds = 10;

struct Files {
  std::mutex mu;
  std::map<std::string, uint32_t> owners;  // to the fork count of each
};

void RemoveAll();

Files* GetFiles() {
  static Files* const files = [] {
    std::atexit(&RemoveAll);
    return new Files;
  }();
  return files;
}

void RemoveAll() {
  Files* const files = GetFiles();
  // In a forked child a thread that is not here may hold it.
  std::unique_lock<std::mutex> lock(files->mu, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& entry : files->owners) {
    if (entry.second == progress::ForkCount()) unlink(entry.first.c_str());
  }
}

absl::Status Unsafe(const std::string& directory, const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat(
      "PENSTOCK_SHM_DIRECTORY=", directory, " is not safe: ", why));
}

std::vector<std::string> SocketNames(const std::string& directory) {
  std::vector<std::string> names;
  DIR* entries = opendir(directory.c_str());
  if (entries == nullptr) return names;
  while (const dirent* entry = readdir(entries)) {
    if (IsSocketName(entry->d_name)) names.push_back(entry->d_name);
  }
  closedir(entries);
  return names;
}

bool IsOldSocket(const std::string& path) {
  struct stat status;
  return lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode) &&
         time(nullptr) - status.st_mtime >= kStaleAfterSeconds;
}

}  // namespace

absl::Status CheckDirectory(const std::string& directory, uid_t peer) {
  struct stat status;
  if (stat(directory.c_str(), &status) != 0) {
    return base::ErrnoStatus(
        errno, absl::StrCat("PENSTOCK_SHM_DIRECTORY=", directory));
  }
  if (!S_ISDIR(status.st_mode)) return Unsafe(directory, "not a directory");
  const uid_t owner = status.st_uid;
  if (owner != 0 && owner != geteuid() && owner != peer) {
    return Unsafe(directory,
                  absl::StrCat("its owner, uid ", owner,
                               ", could replace sockets in it; it must be "
                               "root or the user of one side"));
  }
  const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
  if (others_write && (status.st_mode & S_ISVTX) == 0) {
    return Unsafe(directory,
                  "others may replace sockets in it; use chmod +t on it");
  }
  return absl::OkStatus();
}

void RemoveStaleSockets(const std::string& directory) {
  for (const std::string& name : SocketNames(directory)) {
    const SocketAddress address{name, directory};
    if (!IsOldSocket(PathOf(address))) continue;
    // Whoever listens there closes this connection, which shows no token.
    if (IsDead(address)) unlink(PathOf(address).c_str());
  }
}

void RemoveAtExit(const std::string& path) {
  Files* const files = GetFiles();
  std::lock_guard<std::mutex> lock(files->mu);
  files->owners[path] = progress::ForkCount();
}

void RemoveSocketFile(const std::string& path) {
  Files* const files = GetFiles();
  std::lock_guard<std::mutex> lock(files->mu);
  auto it = files->owners.find(path);
  if (it == files->owners.end()) return;
  if (it->second == progress::ForkCount()) unlink(path.c_str());
  files->owners.erase(it);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
