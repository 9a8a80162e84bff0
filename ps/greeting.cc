#include "ps/greeting.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace penstock::ps {
namespace {

bool IsUnixSocket(absl::string_view address) {
  return absl::StartsWith(address, "unix");
}

// Returns the host of "HOST:PORT" or "[::1]:PORT", with its brackets.
absl::string_view HostOf(absl::string_view address) {
  return address.substr(0, address.rfind(':'));
}

bool IsLoopback(absl::string_view host) {
  return host == "localhost" || host == "[::1]" ||
         absl::StartsWith(host, "127.");
}

// Returns true if only this machine reaches the address.
bool IsLocal(absl::string_view address) {
  return IsUnixSocket(address) || IsLoopback(HostOf(address));
}

}  // namespace

std::string AddressForWorkers(const Listening& listening) {
  if (IsUnixSocket(listening.address)) return listening.address;
  absl::string_view host = HostOf(listening.address);
  if (host == "0.0.0.0" || host == "[::]") host = listening.host;
  return absl::StrCat(host, ":", listening.port);
}

std::string WarnOfLocalAddress(absl::string_view address,
                               const std::vector<std::string>& endpoints) {
  if (!IsLocal(address) ||
      std::all_of(endpoints.begin(), endpoints.end(), IsLocal)) {
    return "";
  }
  return absl::StrCat(
      "etcd is on another machine, but workers there cannot "
      "reach this server at ",
      address, ": give --listen=0.0.0.0:PORT or --advertise=HOST:PORT");
}

std::vector<std::string> GreetingLines(const Listening& listening,
                                       unsigned workers) {
  const std::string address = AddressForWorkers(listening);
  const bool is_local = IsLocal(listening.address);
  return {
      absl::StrCat("listens at ", address,
                   is_local ? ", for workers on this machine only (for others: "
                              "--listen=0.0.0.0:PORT)"
                            : "",
                   "; waits for ", workers,
                   workers == 1 ? " worker" : " workers"),
      absl::StrCat("each worker gets the addresses of all servers, in Python: "
                   "ps.Worker([\"",
                   address,
                   "\"], rank=0, ...). Ctrl-C stops this server, and "
                   "so does SIGTERM"),
  };
}

}  // namespace penstock::ps
