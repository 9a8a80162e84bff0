// Keeps programs with TLS from crashing at exit.

#ifndef PENSTOCK_TRANSPORT_BASE_OPENSSL_AT_EXIT_H_
#define PENSTOCK_TRANSPORT_BASE_OPENSSL_AT_EXIT_H_

namespace penstock {
namespace base {

// Keeps OpenSSL from freeing its tables in exit(). gRPC's threads still run
// then, and a thread in a handshake would crash. Call this function first in
// main(), because it has no effect once OpenSSL has been used. A library must
// not call this function: the choice is the program's.
void KeepOpenSslAtExit();

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_OPENSSL_AT_EXIT_H_
