#include "transport/rpc/address_text.h"

#include <netdb.h>

#include "absl/strings/str_cat.h"

namespace penstock {
namespace rpc {

std::string AddressText(const sockaddr_storage& address) {
  char host[NI_MAXHOST];
  char port[NI_MAXSERV];
  const int error = getnameinfo(reinterpret_cast<const sockaddr*>(&address),
                                sizeof address, host, sizeof host, port,
                                sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  if (error != 0) return "unknown";
  return address.ss_family == AF_INET6 ? absl::StrCat("[", host, "]:", port)
                                       : absl::StrCat(host, ":", port);
}

}  // namespace rpc
}  // namespace penstock
