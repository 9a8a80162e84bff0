// The files of TLS of a parameter server and its workers.

#ifndef PENSTOCK_PS_TLS_H_
#define PENSTOCK_PS_TLS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "grpcpp/security/credentials.h"
#include "grpcpp/security/server_credentials.h"

namespace penstock::ps {

// Call it first in main(): otherwise a program that exits while gRPC's threads
// are in a handshake crashes.
void KeepTlsAtExit();

// Paths of PEM files; empty: not given. Each is read when credentials are made.
struct TlsFiles {
  std::string ca;    // who signs the certificates of peers
  std::string cert;  // this process's own certificate
  std::string key;   // its private key

  // Returns INVALID_ARGUMENT unless none or all are given: both sides prove
  // who they are, since whoever reaches a parameter server may train there.
  absl::Status Check() const;
  // Returns whether any is.
  bool given() const { return !ca.empty() || !cert.empty() || !key.empty(); }
};

// Return insecure credentials if no file is given, else those of TLS in which
// each side has a certificate that the other's `ca` vouches for. A server does
// not verify names; a client verifies the server's. Return NOT_FOUND for a file
// that cannot be read or is empty, and INVALID_ARGUMENT as TlsFiles::Check()
// and CheckPem() do.
absl::StatusOr<std::shared_ptr<grpc::ServerCredentials>> ServerSecurity(
    const TlsFiles& files);
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> ClientSecurity(
    const TlsFiles& files);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_TLS_H_
