// How a program with TLS ends.

#ifndef PENSTOCK_TRANSPORT_BASE_OPENSSL_AT_EXIT_H_
#define PENSTOCK_TRANSPORT_BASE_OPENSSL_AT_EXIT_H_

namespace penstock {
namespace base {

// Has OpenSSL not free its tables in exit(). gRPC's threads run on meanwhile,
// and one that is in a handshake would crash. Call it first in main(): it has
// no effect once OpenSSL has been used. For programs; a library leaves that to
// them.
void KeepOpenSslAtExit();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_OPENSSL_AT_EXIT_H_
