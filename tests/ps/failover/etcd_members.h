// An etcd of several members, on hosts of their own.

#ifndef PENSTOCK_TESTS_PS_FAILOVER_ETCD_MEMBERS_H_
#define PENSTOCK_TESTS_PS_FAILOVER_ETCD_MEMBERS_H_

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/process/child.h"
#include "tests/ps/failover/network.h"

namespace penstock::ps {

// The members of one etcd. Not thread-safe.
class EtcdMembers {
 public:
  // Starts so many members, from the host `first_host` on. `folder` gets their
  // data.
  EtcdMembers(const Network& network, size_t first_host, size_t members,
              std::string folder);

  // Returns the addresses of all members, as flags take them.
  std::string addresses() const;
  size_t members() const { return processes_.size(); }
  size_t HostOf(size_t member) const { return first_host_ + member; }
  process::Child* process(size_t member) { return processes_[member].get(); }
  // Starts a member that was killed, with the data it had.
  void Start(size_t member);

 private:
  const Network& network_;
  const size_t first_host_;
  const std::string folder_;
  std::vector<std::unique_ptr<process::Child>> processes_;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_TESTS_PS_FAILOVER_ETCD_MEMBERS_H_
