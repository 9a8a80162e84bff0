// The address of a rank, as the ranks of a group exchange it.

#ifndef PENSTOCK_COLLECTIVES_NET_ADDRESS_H_
#define PENSTOCK_COLLECTIVES_NET_ADDRESS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock::collectives {

struct Address {
  std::string target;  // "host:port" of the listener
  std::string token;   // of the listener
  // Equal on processes that can share memory as a HostGroup. Empty if unknown.
  // An unknown host counts as different from every other host.
  std::string host;
};

// Returns one line of printable characters.
std::string ToText(const Address& address);
// Returns INVALID_ARGUMENT for other text.
absl::StatusOr<Address> ParseAddress(absl::string_view text);

// Returns the addresses of all ranks. Returns an error that names the rank
// whose address is malformed, or the two ranks that have the same address.
absl::StatusOr<std::vector<Address>> ParseAddresses(
    const std::vector<std::string>& texts);

// Returns the `host` of this process: its kernel, network namespace and user.
std::string HostOfProcess();

// Returns the host of each rank, numbered from 0 in the order of the ranks.
std::vector<int> NumberHosts(const std::vector<Address>& addresses);

// Returns a digest of the addresses. Equal addresses give equal digests. The
// digests of different addresses are equal with a probability of 2^-64.
std::string Digest(const std::vector<std::string>& texts);

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_ADDRESS_H_
