// The lines that a parameter server logs when it starts to listen.

#ifndef PENSTOCK_PS_GREETING_H_
#define PENSTOCK_PS_GREETING_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace penstock::ps {

// An address at which a server listens.
struct Listening {
  std::string address;  // of --listen, in gRPC's form
  int port = 0;         // the real one, if `address` ends with ":0"
  std::string host;     // this machine's name
};

// Returns the address that workers dial. A server that listens at all addresses
// of its machine is dialed by the machine's name.
std::string AddressForWorkers(const Listening& listening);

// Returns a warning if other machines use the etcd of these endpoints, but
// cannot reach a server at `address`. Otherwise returns "".
std::string WarnOfLocalAddress(absl::string_view address,
                               const std::vector<std::string>& endpoints);

// Returns log lines for people who start a server for the first time: the
// address, who can reach it, what the server waits for, and how to stop the
// server.
std::vector<std::string> GreetingLines(const Listening& listening,
                                       unsigned workers);

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_GREETING_H_
