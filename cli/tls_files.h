// The TLS files of commands.

#ifndef PENSTOCK_CLI_TLS_FILES_H_
#define PENSTOCK_CLI_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::cli {

// The contents of the files. Empty if not given.
struct TlsTexts {
  std::string ca;
  std::string cert;
  std::string key;
};

// The paths of the files, for client or server. Empty if not given.
struct TlsFiles {
  std::string ca;
  std::string cert;
  std::string key;

  // Returns INVALID_ARGUMENT if only one of `cert` and `key` is given.
  absl::Status Check() const;
  // Reads the given files. Returns an error that names the file if a file
  // cannot be read or is not PEM, or if the key does not match the certificate.
  absl::StatusOr<TlsTexts> Read() const;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TLS_FILES_H_
