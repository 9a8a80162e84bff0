#include "transport/fabric/shm/socket_file.h"

#include <dirent.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "transport/base/mutex.h"
#include "transport/base/status_util.h"
#include "transport/fabric/shm/address.h"
#include "transport/progress/fork_count.h"

namespace penstock {
namespace fabric {
namespace shm {
namespace {

// The minimum age of a stale socket. A younger socket may start to listen soon;
// until then it refuses connections like a stale socket.
constexpr time_t kStaleAfterSeconds = 10;

struct Files {
  base::Mutex mu;
  // Maps each path to its owner's fork count.
  std::map<std::string, uint32_t> owners ABSL_GUARDED_BY(mu);
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
  // Returns if the lock is held. In a forked child, a thread of the parent may
  // have held the lock.
  if (!files->mu.TryLock()) return;
  for (const auto& entry : files->owners) {
    if (entry.second == progress::ForkCount()) unlink(entry.first.c_str());
  }
  files->mu.Unlock();
}

// Follows the path of a directory from the root, as the kernel does. Checks at
// each step who could change the path.
class DirectoryCheck {
 public:
  DirectoryCheck(std::string directory, uid_t peer)
      : directory_(std::move(directory)), peer_(peer) {}

  absl::Status Run() {
    if (directory_.empty() || directory_[0] != '/') {
      return Unsafe("not a path from the root");
    }
    left_.assign(1, directory_);
    absl::Status good = GoOn("/");
    while (good.ok() && !left_.empty()) {
      const std::string name = TakeName();
      if (!name.empty() && name != ".") good = Step(name);
    }
    return good;
  }

 private:
  static constexpr int kMaxLinks = 40;  // the kernel's limit

  absl::Status Unsafe(const std::string& why) const {
    return absl::FailedPreconditionError(absl::StrCat(
        "PENSTOCK_SHM_DIRECTORY=", directory_, " is not safe: ", why));
  }

  // Returns the next component of the remaining path. The target of a symbolic
  // link is inserted before the rest.
  std::string TakeName() {
    std::string* const path = &left_.back();
    const size_t slash = path->find('/');
    std::string name = path->substr(0, slash);
    path->erase(0, slash == std::string::npos ? slash : slash + 1);
    if (path->empty()) left_.pop_back();
    return name;
  }

  absl::Status Step(const std::string& name) {
    if (name == "..") {  // the parent has been checked
      if (!at_.empty()) at_.erase(at_.rfind('/'));
      return absl::OkStatus();
    }
    return GoOn(absl::StrCat(at_, "/", name));
  }

  absl::Status GoOn(const std::string& path) {
    struct stat status;
    if (lstat(path.c_str(), &status) != 0) {
      return base::ErrnoStatus(
          errno, absl::StrCat("PENSTOCK_SHM_DIRECTORY=", directory_));
    }
    if (path == "/") root_owner_ = status.st_uid;
    absl::Status good = CheckOwner(path, status.st_uid);
    if (!good.ok()) return good;
    if (S_ISLNK(status.st_mode)) return Follow(path);
    if (!S_ISDIR(status.st_mode)) return Unsafe(path + " is not a directory");
    const bool others_write = (status.st_mode & (S_IWGRP | S_IWOTH)) != 0;
    if (others_write && (status.st_mode & S_ISVTX) == 0) {
      return Unsafe(absl::StrCat("other users may replace files in ", path,
                                 "; use chmod +t on it"));
    }
    at_ = path == "/" ? "" : path;
    return absl::OkStatus();
  }

  absl::Status CheckOwner(const std::string& path, uid_t owner) const {
    if (owner == 0 || owner == geteuid() || owner == peer_) {
      return absl::OkStatus();
    }
    // Trusts the owner of the root directory, whatever its uid, because this
    // user can replace anything.
    const bool is_above = !left_.empty() || path == "/";
    if (is_above && owner == root_owner_) return absl::OkStatus();
    return Unsafe(absl::StrCat("the owner of ", path, ", uid ", owner,
                               ", could replace files there; the owner must be "
                               "root or the user of one side"));
  }

  absl::Status Follow(const std::string& link) {
    char target[PATH_MAX];
    const ssize_t size = readlink(link.c_str(), target, sizeof target);
    if (size <= 0 || size == sizeof target || ++links_ > kMaxLinks) {
      return Unsafe(link + " leads nowhere");
    }
    left_.emplace_back(target, size);
    if (target[0] == '/') at_.clear();
    return absl::OkStatus();
  }

  const std::string directory_;
  const uid_t peer_;
  uid_t root_owner_ = 0;
  int links_ = 0;
  std::string at_;                 // the path so far, without links; "" for /
  std::vector<std::string> left_;  // the rest of the path; the next is last
};

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
  return DirectoryCheck(directory, peer).Run();
}

void RemoveStaleSockets(const std::string& directory) {
  for (const std::string& name : SocketNames(directory)) {
    const SocketAddress address{name, directory};
    if (!IsOldSocket(PathOf(address))) continue;
    // Skips sockets on which a process listens. IsDead() finds out by
    // connecting; the listener closes this connection, because it sends no
    // token.
    if (IsDead(address)) unlink(PathOf(address).c_str());
  }
}

void RemoveAtExit(const std::string& path) {
  Files* const files = GetFiles();
  base::MutexLock lock(&files->mu);
  files->owners[path] = progress::ForkCount();
}

void RemoveSocketFile(const std::string& path) {
  Files* const files = GetFiles();
  base::MutexLock lock(&files->mu);
  auto it = files->owners.find(path);
  if (it == files->owners.end()) return;
  if (it->second == progress::ForkCount()) unlink(path.c_str());
  files->owners.erase(it);
}

}  // namespace shm
}  // namespace fabric
}  // namespace penstock
