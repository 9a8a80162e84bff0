// Checks the PEM files of TLS.

#ifndef PENSTOCK_PS_PEM_H_
#define PENSTOCK_PS_PEM_H_

#include <string>

#include "absl/status/status.h"

namespace penstock::ps {

// The path and the content of a PEM file.
struct PemFile {
  std::string path;
  std::string text;
};

// The Check functions below return INVALID_ARGUMENT, which names the file and
// the defect. Without them, gRPC would report only missing credentials.
//
// Checks that `ca` has readable certificates of authorities.
absl::Status CheckAuthorities(const PemFile& ca);
// Checks a certificate and its private key. `cert` must be valid today. `key`
// must be the private key of `cert`, without a passphrase. Ignores the signer
// of `cert`, because peers may trust another authority than this process.
absl::Status CheckPair(const PemFile& cert, const PemFile& key);
// Runs CheckAuthorities() and CheckPair().
absl::Status CheckPem(const PemFile& ca, const PemFile& cert,
                      const PemFile& key);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PEM_H_
