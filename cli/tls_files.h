// The files of TLS that commands take.

#ifndef PENSTOCK_CLI_TLS_FILES_H_
#define PENSTOCK_CLI_TLS_FILES_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace penstock::cli {

// The contents of the files; empty: not given.
struct TlsTexts {
  std::string ca;
  std::string cert;
  std::string key;
};

// The paths of the files, for either side; empty: not given.
struct TlsFiles {
  std::string ca;
  std::string cert;
  std::string key;

  // Returns INVALID_ARGUMENT if there is one of `cert` and `key`.
  absl::Status Check() const;
  // Reads those that are given. Returns an error that names the file if one
  // cannot be read, is no PEM, or the key is not the certificate's.
  absl::StatusOr<TlsTexts> Read() const;
};

}  // namespace penstock::cli

#endif  // PENSTOCK_CLI_TLS_FILES_H_
