// Reads files that grant permissions.

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
  kSecret,  // readable by its owner, or the group if root owns it
};

// Returns the content of a file that only root and this process's user can have
// written. Never blocks on a pipe or a device. Follows symbolic links, since
// Kubernetes mounts files as links. Does not check who may change the folder.
// Fails with
//
// - NOT_FOUND or PERMISSION_DENIED if the file cannot be opened,
// - FAILED_PRECONDITION if it is not a regular file, or from CheckOwner(),
// - RESOURCE_EXHAUSTED if the file has more than `max_bytes`; reads no more.
absl::StatusOr<std::string> ReadTrustedFile(const std::string& path,
                                            size_t max_bytes, Secrecy secrecy);

// Returns OK if `owner` is root or `self`, and `mode` does not allow other
// users to write the file, or to read a secret file. Otherwise returns
// FAILED_PRECONDITION with the remedy. A group may read secrets that root owns,
// as with PostgreSQL's private keys, for containers whose user is not root.
absl::Status CheckOwner(const std::string& path, uid_t owner, mode_t mode,
                        uid_t self, Secrecy secrecy);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_ACCESS_TRUSTED_FILE_H_
