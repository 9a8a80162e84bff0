// Finds out why a server cannot listen, which gRPC says in its log only.

#ifndef PENSTOCK_TRANSPORT_BASE_LISTEN_ERROR_H_
#define PENSTOCK_TRANSPORT_BASE_LISTEN_ERROR_H_

#include <string>

namespace penstock {
namespace base {

// Tries to listen on TCP at `host`, a name or an IP address without brackets,
// and `port`. Returns why that fails and what to do, for people: "the port is
// in use (see: ss -ltnp)". Returns "" if it works at one address of the name.
// Blocks while a name is looked up.
std::string WhyCannotListen(const std::string& host, int port);

// The same of an address as gRPC has it: "HOST:PORT" or "[::1]:PORT". Returns
// "" for one of another form, such as "unix:PATH".
std::string WhyCannotListen(const std::string& address);

}  // namespace base
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_BASE_LISTEN_ERROR_H_
