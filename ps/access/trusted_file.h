// Reads files that decide who may do what.

#ifndef PENSTOCK_PS_ACCESS_TRUSTED_FILE_H_
#define PENSTOCK_PS_ACCESS_TRUSTED_FILE_H_

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::ps {

enum class Secrecy {
  kOpen,    // anybody may read it
  kSecret,  // only its owner may, or the group if root owns it
};

// Returns the content of a file that nobody could have written but root and the
// user of this process. Never blocks on a pipe or a device. A symbolic link is
// followed, since Kubernetes mounts files as links; who may change the folder
// is not looked at. Returns
//
// - NOT_FOUND or PERMISSION_DENIED if it cannot be opened,
// - FAILED_PRECONDITION if it is no regular file, or as CheckOwner() does,
// - RESOURCE_EXHAUSTED if it has more than `max_bytes`; no more are read.
absl::StatusOr<std::string> ReadTrustedFile(const std::string& path,
                                            size_t max_bytes, Secrecy secrecy);

// Returns FAILED_PRECONDITION, with the remedy, unless `owner` is root or
// `self`, and the mode lets no other user write, nor read what is secret. The
// rule for secrets is that of PostgreSQL's private keys: a group may read those
// that root owns, as it must in a container whose user is not root.
absl::Status CheckOwner(const std::string& path, uid_t owner, mode_t mode,
                        uid_t self, Secrecy secrecy);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_TRUSTED_FILE_H_
