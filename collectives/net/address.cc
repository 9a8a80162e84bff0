#include "collectives/net/address.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "transport/base/host_id.h"
#include "transport/base/token.h"

namespace penstock::collectives {

std::string ToText(const Address& address) {
  return absl::StrCat(address.target, " ",
                      absl::BytesToHexString(address.token), " ", address.host);
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  const std::vector<std::string> parts = absl::StrSplit(text, ' ');
  // Checks the characters first, because HexStringToBytes() accepts any
  // characters.
  const bool is_hex =
      parts.size() == 3 && parts[1].size() == 2 * base::kTokenBytes &&
      parts[1].find_first_not_of("0123456789abcdef") == std::string::npos;
  if (!is_hex || parts[0].empty()) {
    return absl::InvalidArgumentError(
        "malformed address, expected \"host:port token host\"");
  }
  return Address{parts[0], absl::HexStringToBytes(parts[1]), parts[2]};
}

absl::StatusOr<std::vector<Address>> ParseAddresses(
    const std::vector<std::string>& texts) {
  std::vector<Address> addresses;
  std::map<std::string, int> ranks;  // by target
  for (const std::string& text : texts) {
    const int rank = static_cast<int>(addresses.size());
    absl::StatusOr<Address> address = ParseAddress(text);
    if (!address.ok()) {
      return absl::InvalidArgumentError(
          absl::StrCat("rank ", rank, ": ", address.status().message()));
    }
    const auto [other, is_new] = ranks.emplace(address->target, rank);
    if (!is_new) {
      return absl::InvalidArgumentError(
          absl::StrCat("ranks ", other->second, " and ", rank,
                       " have the same address, ", address->target));
    }
    addresses.push_back(*std::move(address));
  }
  return addresses;
}

std::string HostOfProcess() {
  struct stat network = {};
  if (base::HostId().empty() || stat("/proc/self/ns/net", &network) != 0) {
    return "";
  }
  return absl::StrCat(base::HostId(), "/", network.st_ino, "/", geteuid());
}

std::vector<int> NumberHosts(const std::vector<Address>& addresses) {
  std::map<std::string, int> numbers;
  std::vector<int> hosts;
  int next = 0;
  for (const Address& address : addresses) {
    const auto known = numbers.find(address.host);
    if (!address.host.empty() && known != numbers.end()) {
      hosts.push_back(known->second);
      continue;
    }
    numbers[address.host] = next;
    hosts.push_back(next++);
  }
  return hosts;
}

// Computes FNV-1a. A stronger hash is not needed: all ranks know all addresses,
// and nobody would gain from a collision.
std::string Digest(const std::vector<std::string>& texts) {
  uint64_t hash = 0xCBF29CE484222325;
  const auto add = [&hash](char c) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3;
  };
  for (const std::string& text : texts) {
    for (const char c : text) add(c);
    add('\n');
  }
  return absl::StrCat(absl::Hex(hash, absl::kZeroPad16));
}

}  // namespace penstock::collectives
