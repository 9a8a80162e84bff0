#include "transport/base/output_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "transport/base/status_util.h"

namespace penstock {
namespace base {

absl::StatusOr<UniqueFd> OpenOutputFile(const std::string& path,
                                        absl::string_view what) {
  const std::string operation = absl::StrCat(what, " ", path);
  const auto failed = [&operation] { return ErrnoStatus(errno, operation); };
  // Does not wait for the reader of a pipe.
  UniqueFd file(open(path.c_str(),
                     O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK,
                     0600));
  if (!file.valid()) return failed();
  struct stat status;
  if (fstat(file.get(), &status) != 0) return failed();
  const auto refused = [&operation](absl::string_view why) {
    return absl::FailedPreconditionError(absl::StrCat(operation, ": ", why));
  };
  if (!S_ISREG(status.st_mode)) return refused("it is not a file");
  // In a folder where others may write, the name may be theirs.
  if (status.st_uid != geteuid()) return refused("it is another user's");
  if (status.st_nlink != 1) return refused("the file has other names, too");
  if (flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return failed();
    return refused(
        "another process does, or a child of one that did; put %p into the "
        "name, which stands for the pid");
  }
  // An older file may be open to others.
  if (fchmod(file.get(), 0600) != 0) return failed();
  if (ftruncate(file.get(), 0) != 0) return failed();
  return file;
}

}  // namespace base
}  // namespace penstock
