#include "ps/access/trusted_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "transport/base/unique_fd.h"

namespace penstock::ps {
namespace {

constexpr uid_t kRoot = 0;
constexpr size_t kPiece = 4096;

absl::Status Refuse(const std::string& path, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("read ", path, ": ", why));
}

absl::Status Error(const std::string& path) {
  return absl::ErrnoToStatus(errno, absl::StrCat("read ", path));
}

absl::StatusOr<std::string> ReadAll(int fd, const std::string& path,
                                    size_t max_bytes) {
  std::string text;
  while (text.size() <= max_bytes) {
    char piece[kPiece];
    const ssize_t got = read(fd, piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Error(path);
    if (got == 0) return text;
    text.append(piece, static_cast<size_t>(got));
  }
  return absl::ResourceExhaustedError(
      absl::StrCat("read ", path, ": it has more than ", max_bytes, " bytes"));
}

}  // namespace

absl::Status CheckOwner(const std::string& path, uid_t owner, mode_t mode,
                        uid_t self, Secrecy secrecy) {
  if (owner != kRoot && owner != self) {
    return Refuse(path, absl::StrCat("user ", owner,
                                     " owns it: it has to be root's or user ",
                                     self, "'s, as whom this process runs"));
  }
  if ((mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Refuse(path, "others may write it: chmod go-w");
  }
  if (secrecy == Secrecy::kOpen) return absl::OkStatus();
  const mode_t forbidden = owner == self ? S_IRWXG | S_IRWXO : S_IRWXO;
  if ((mode & forbidden) != 0) {
    return Refuse(path,
                  "others may read it, and it is a secret: chmod 600 (in "
                  "Kubernetes: defaultMode: 0400); the group may read it only "
                  "if root owns it");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ReadTrustedFile(const std::string& path,
                                            size_t max_bytes, Secrecy secrecy) {
  // Opens with O_NONBLOCK, because opening a pipe would otherwise wait for a
  // writer.
  const base::UniqueFd fd(
      open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.valid()) return Error(path);
  struct stat file = {};
  if (fstat(fd.get(), &file) != 0) return Error(path);
  if (!S_ISREG(file.st_mode)) return Refuse(path, "it is no regular file");
  absl::Status owner =
      CheckOwner(path, file.st_uid, file.st_mode, geteuid(), secrecy);
  if (!owner.ok()) return owner;
  return ReadAll(fd.get(), path, max_bytes);
}

}  // namespace penstock::ps
