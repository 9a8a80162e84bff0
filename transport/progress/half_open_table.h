// Limits connections of peers that have not sent their first request yet.

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

// Returns the part of an address that identifies its owner: an IPv4 address,
// even if mapped to IPv6, or the first 64 bits of an IPv6 address. The owner
// can choose the remaining bits freely.
std::string HostOf(const sockaddr_storage& address);

// Decides which half-open connection to drop if there are too many: the oldest
// connection of the host with the most connections. A host with many
// connections therefore does not harm other hosts. A fast client finishes
// before its connection becomes the oldest. Owns no connection. Each call takes
// logarithmic time. Not thread-safe.
class HalfOpenTable {
 public:
  // Identifies a connection. Never 0; later connections have greater ids.
  using Id = uint64_t;
  struct Limits {
    size_t in_all = 0;
    size_t of_host = 0;
  };

  // Returns `wanted`, or lower limits if the process may open few descriptors.
  // All half-open connections get at most a quarter of the descriptors, and one
  // host gets a quarter of this quarter.
  static Limits WithinDescriptors(Limits wanted);

  explicit HalfOpenTable(Limits limits) : limits_(limits) {}

  Id Add(const std::string& host);
  // Removes an entry. Ignores unknown ids.
  void Remove(Id id);
  size_t size() const { return hosts_by_id_.size(); }
  const Limits& limits() const { return limits_; }

  // Returns the connection to drop if the table exceeds its limits, or else
  // nothing. The connection stays in the table until Remove().
  absl::optional<Id> Excess() const;
  // Returns the connection to drop next, even if the table is within its
  // limits. Returns nothing if the table is empty.
  absl::optional<Id> Next() const;

 private:
  // The sort key of a host: the number of its connections, then the negative id
  // of its oldest connection. The host with the greatest key loses a connection
  // next.
  using Weight = std::pair<size_t, int64_t>;

  static Weight WeightOf(const std::set<Id>& connections);
  // Changes a host's connections by `change`, and updates the host's position
  // in the order.
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
