// The key and the certificate of the servers with TLS.

#ifndef PENSTOCK_BENCH_RPC_SETUP_IDENTITY_H_
#define PENSTOCK_BENCH_RPC_SETUP_IDENTITY_H_

#include <string>

#include "absl/status/statusor.h"

namespace penstock {
namespace bench {

// The name in the certificate.
constexpr char kIdentityName[] = "penstock-bench";

// Returns a new private key and its self-signed certificate, which is valid for
// a day. Both are PEM, concatenated. gRPC accepts this text as key, as
// certificate and as root: each reader skips the other block. Fails if OpenSSL
// fails.
absl::StatusOr<std::string> MakeIdentity();

}  // namespace bench
}  // namespace penstock

#endif  // PENSTOCK_BENCH_RPC_SETUP_IDENTITY_H_
