// Bounds connections of strangers until they have said what they want.

#ifndef PENSTOCK_TRANSPORT_PROGRESS_HALF_OPEN_TABLE_H_
#define PENSTOCK_TRANSPORT_PROGRESS_HALF_OPEN_TABLE_H_

#include <sys/socket.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "absl/types/optional.h"

namespace penstock {
namespace progress {

// Returns the part of an address that stands for one owner: an IPv4 address,
// also inside of IPv6, or the first 64 bits of an IPv6 address, since a network
// gives a machine as many as it likes of the rest.
std::string HostOf(const sockaddr_storage& address);

// Knows which of the half-open connections is to go when there are too many:
// the oldest of the host that has the most. So a host that keeps many costs
// others nothing, and whoever is quick is through before it is the oldest.
// Owns no connection. Each call takes a time that grows with the logarithm of
// their number. Not thread-safe.
class HalfOpenTable {
 public:
  // Identifies a connection. Never 0; later ones have greater ids.
  using Id = uint64_t;
  struct Limits {
    size_t in_all = 0;
    size_t of_host = 0;
  };

  // Returns `wanted`, or less where the process may open few descriptors: a
  // quarter of them at most, and a quarter of that for one host.
  static Limits WithinDescriptors(Limits wanted);

  explicit HalfOpenTable(Limits limits) : limits_(limits) {}

  Id Add(const std::string& host);
  // Ignores ids that are not there.
  void Remove(Id id);
  size_t size() const { return hosts_by_id_.size(); }
  const Limits& limits() const { return limits_; }

  // Returns the connection to drop, which stays there until Remove(). Nothing
  // if the limits are kept.
  absl::optional<Id> Excess() const;
  // Returns the connection to drop next, limits or not. Nothing if there is
  // none.
  absl::optional<Id> Next() const;

 private:
  // How many connections a host has, and the negative of the oldest's id: the
  // last key is the host whose oldest is next.
  using Weight = std::pair<size_t, int64_t>;

  static Weight WeightOf(const std::set<Id>& connections);
  // Changes the host's connections by `change`, and its place in the order.
  template <typename Change>
  void Reweigh(const std::string& host, Change change);

  const Limits limits_;
  Id last_id_ = 0;
  std::map<Id, std::string> hosts_by_id_;
  std::map<std::string, std::set<Id>> by_host_;
  std::map<Weight, std::string> hosts_by_weight_;
};

}  // namespace progress
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_PROGRESS_HALF_OPEN_TABLE_H_
