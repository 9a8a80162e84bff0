// Whether what TLS is to read can be read.

#ifndef PENSTOCK_PS_PEM_H_
#define PENSTOCK_PS_PEM_H_

#include <string>

#include "absl/status/status.h"

namespace penstock::ps {

// A file of PEM.
struct PemFile {
  std::string path;
  std::string text;
};

// Return INVALID_ARGUMENT, which names the file and what is wrong with it; gRPC
// itself would say only that there are no credentials.
//
// CheckAuthorities(): unless `ca` holds certificates.
absl::Status CheckAuthorities(const PemFile& ca);
// CheckPair(): unless `cert` holds a certificate that is valid today, and `key`
// its private key, without a passphrase. Who has signed `cert` is not looked
// at: peers may trust another authority than this process does.
absl::Status CheckPair(const PemFile& cert, const PemFile& key);
// Both.
absl::Status CheckPem(const PemFile& ca, const PemFile& cert,
                      const PemFile& key);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_PEM_H_
