// The host of a rank, and the address at which other ranks reach it.

#ifndef PENSTOCK_FRAMEWORKS_TORCH_PLACE_H_
#define PENSTOCK_FRAMEWORKS_TORCH_PLACE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace penstock {
namespace pytorch {

// The location of a rank. Addresses are numeric, with brackets around IPv6.
struct Place {
  // Equal on processes that can share memory. Empty if unknown. An unknown host
  // counts as different from every other host.
  std::string host;
  std::string name;  // the host's, for people
  // The address of this host from which packets go to the store. A loopback
  // address if the store is on this host. Empty if unknown.
  std::string own_address;
  // The store's address, as this process resolves the store's name. Empty if
  // unknown.
  std::string store_address;
};

// Returns the place of this process. `store` is the host of the store, as all
// ranks name it, or empty if the store has none. If GLOO_SOCKET_IFNAME names
// network interfaces, own_address is an address of the first one, as in gloo.
// Returns an error if there is no such interface, or the interface has no
// address.
absl::StatusOr<Place> PlaceOfProcess(const std::string& store);

// Returns a text of several lines.
std::string ToText(const Place& place);
// Returns INVALID_ARGUMENT for text of another version of Penstock.
absl::StatusOr<Place> ParsePlace(absl::string_view text);

// Returns true if all ranks can share memory.
bool AreOnOneHost(const std::vector<Place>& places);

// Returns for each rank the address at which the other ranks reach it: the
// address from which its packets to the store come. Ranks on the store's own
// host may know only a loopback address. Such ranks get the address by which
// other hosts know the store, or the loopback address if no rank knows another
// address. Returns FAILED_PRECONDITION, with the rank, if a rank has no
// address.
absl::StatusOr<std::vector<std::string>> AddressesOf(
    const std::vector<Place>& places);

}  // namespace pytorch
}  // namespace penstock

#endif  // PENSTOCK_FRAMEWORKS_TORCH_PLACE_H_
