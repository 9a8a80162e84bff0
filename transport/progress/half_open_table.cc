#include "transport/progress/half_open_table.h"

#include <netinet/in.h>
#include <sys/resource.h>

#include <algorithm>

namespace penstock {
namespace progress {
namespace {

// The fraction (1 / n) of the process's descriptors that half-open connections
// may use. One host may use the same fraction of these.
constexpr size_t kShare = 4;
constexpr size_t kNetworkBytes = 8;  // of an IPv6 address
constexpr size_t kMappedBytes = 12;  // before the IPv4 address in IPv6's

std::string Bytes(const void* begin, size_t size) {
  return std::string(static_cast<const char*>(begin), size);
}

}  // namespace

std::string HostOf(const sockaddr_storage& address) {
  if (address.ss_family == AF_INET) {
    const auto& in = reinterpret_cast<const sockaddr_in&>(address);
    return Bytes(&in.sin_addr, sizeof in.sin_addr);
  }
  if (address.ss_family != AF_INET6) return "";
  const in6_addr& in6 =
      reinterpret_cast<const sockaddr_in6&>(address).sin6_addr;
  if (IN6_IS_ADDR_V4MAPPED(&in6)) {
    return Bytes(in6.s6_addr + kMappedBytes, sizeof in6 - kMappedBytes);
  }
  return Bytes(in6.s6_addr, kNetworkBytes);
}

HalfOpenTable::Limits HalfOpenTable::WithinDescriptors(Limits wanted) {
  rlimit descriptors = {};
  if (getrlimit(RLIMIT_NOFILE, &descriptors) != 0 ||
      descriptors.rlim_cur == RLIM_INFINITY) {
    return wanted;
  }
  const size_t share =
      std::max<size_t>(static_cast<size_t>(descriptors.rlim_cur) / kShare, 1);
  return {std::min(wanted.in_all, share),
          std::min(wanted.of_host, std::max<size_t>(share / kShare, 1))};
}

HalfOpenTable::Weight HalfOpenTable::WeightOf(const std::set<Id>& connections) {
  return {connections.size(), -static_cast<int64_t>(*connections.begin())};
}

template <typename Change>
void HalfOpenTable::Reweigh(const std::string& host, Change change) {
  std::set<Id>& connections = by_host_[host];
  if (!connections.empty()) hosts_by_weight_.erase(WeightOf(connections));
  change(&connections);
  if (connections.empty()) {
    by_host_.erase(host);
  } else {
    hosts_by_weight_.emplace(WeightOf(connections), host);
  }
}

HalfOpenTable::Id HalfOpenTable::Add(const std::string& host) {
  const Id id = ++last_id_;
  hosts_by_id_.emplace(id, host);
  Reweigh(host, [id](std::set<Id>* of_host) { of_host->insert(id); });
  return id;
}

void HalfOpenTable::Remove(Id id) {
  const auto found = hosts_by_id_.find(id);
  if (found == hosts_by_id_.end()) return;
  const std::string host = std::move(found->second);
  hosts_by_id_.erase(found);
  Reweigh(host, [id](std::set<Id>* of_host) { of_host->erase(id); });
}

absl::optional<HalfOpenTable::Id> HalfOpenTable::Excess() const {
  const bool is_kept =
      size() <= limits_.in_all &&
      (hosts_by_weight_.empty() ||
       hosts_by_weight_.rbegin()->first.first <= limits_.of_host);
  if (is_kept) return absl::nullopt;
  return Next();
}

absl::optional<HalfOpenTable::Id> HalfOpenTable::Next() const {
  if (hosts_by_weight_.empty()) return absl::nullopt;
  return static_cast<Id>(-hosts_by_weight_.rbegin()->first.second);
}

}  // namespace progress
}  // namespace penstock
