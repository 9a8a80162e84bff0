// Explains why a server cannot listen. gRPC writes the cause only to its log.

#ifndef PENSTOCK_TRANSPORT_BASE_LISTEN_ERROR_H_
#define PENSTOCK_TRANSPORT_BASE_LISTEN_ERROR_H_

#include <string>

namespace penstock {
namespace base {

// Tries to listen on TCP at `host`, a name or an IP address without brackets,
// and `port`. Returns "" if this works at any address of the name. Otherwise
// returns the cause and the remedy, for people: "the port is in use (see: ss
// -ltnp)". Blocks while the name is looked up.
std::string WhyCannotListen(const std::string& host, int port);

// Does the same for an address in gRPC's form: "HOST:PORT" or "[::1]:PORT".
// Returns "" for another form, such as "unix:PATH".
std::string WhyCannotListen(const std::string& address);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LISTEN_ERROR_H_
