// The credentials of a parameter server and its workers, from TLS files.

#ifndef PENSTOCK_PS_TLS_H_
#define PENSTOCK_PS_TLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace penstock::ps {

// Keeps OpenSSL usable during exit. Call first in main(). Otherwise a program
// crashes if it exits while gRPC's threads do a TLS handshake.
void KeepTlsAtExit();

// Paths of PEM files. A path is empty if it was not given. The files are read
// when credentials are made.
struct TlsFiles {
  std::string ca;    // the authorities that sign the certificates of peers
  std::string cert;  // this process's own certificate
  std::string key;   // the private key of `cert`

  // Returns OK if all paths or none are given, and INVALID_ARGUMENT otherwise.
  // Both sides must prove their identity, because every client of a parameter
  // server may train on it.
  absl::Status Check() const;
  // Returns true if any path is given.
  bool given() const { return !ca.empty() || !cert.empty() || !key.empty(); }
};

// Return insecure credentials if no file is given. Otherwise return credentials
// for mutual TLS: the `ca` of each side must have signed the peer's
// certificate. Only the client verifies the peer's name. Return NOT_FOUND for
// an unreadable or empty file, and the errors of TlsFiles::Check() and
// CheckPem().
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerSecurity(
    const TlsFiles& files);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientSecurity(
    const TlsFiles& files);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TLS_H_
