// Converts a socket's address to text.

#ifndef PENSTOCK_TRANSPORT_RPC_ADDRESS_TEXT_H_
#define PENSTOCK_TRANSPORT_RPC_ADDRESS_TEXT_H_

#include <sys/socket.h>

#include <string>

namespace penstock {
namespace rpc {

// Returns the address as text for logs, for example "10.0.0.1:5000".
std::string AddressText(const sockaddr_storage& address);

}  // namespace rpc
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_RPC_ADDRESS_TEXT_H_
