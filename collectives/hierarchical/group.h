// A group of ranks on several hosts: shared memory within a host, messages
// between hosts.

#ifndef PENSTOCK_COLLECTIVES_HIERARCHICAL_GROUP_H_
#define PENSTOCK_COLLECTIVES_HIERARCHICAL_GROUP_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "collectives/call.h"
#include "collectives/group.h"
#include "collectives/hierarchical/layout.h"
#include "collectives/host/group.h"
#include "collectives/host/pool.h"
#include "collectives/letter.h"
#include "collectives/net/group.h"
#include "collectives/net/listener.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {

// Ranks of one host form a HostGroup. The first ranks of all hosts, their
// leaders, form a NetGroup. all_reduce, broadcast, all_gather, reduce_scatter
// and barrier have three phases: within hosts, between leaders, within hosts.
// Other operations, and messages between hosts, use a NetGroup of all ranks.
//
// A reduction combines the operands of each host in the order of their ranks,
// then the results of the hosts in the order of the leaders' schedule. This
// order depends on the operation, its size, the hosts of the ranks, and the
// options.
//
// Errors name ranks of the whole group, not of the inner groups.
class HierarchicalGroup final : public Group {
 public:
  // Forms the group like NetGroup::Form(). Ranks whose listeners have the same
  // neighbourhood must be processes of one user and one network namespace, at
  // most kMaxHostRanks of them. `pool_bytes` is the size of each rank's pool(),
  // a multiple of kMinSlotBytes. Must be equal on all ranks.
  static absl::StatusOr<std::unique_ptr<HierarchicalGroup>> Form(
      std::unique_ptr<Listener> listener,
      const std::vector<std::string>& addresses, const NetGroupOptions& options,
      uint64_t pool_bytes = 0);

  // Waits for peers like ~NetGroup(), for up to eight seconds.
  ~HierarchicalGroup() override;

  int rank() const override { return all_->rank(); }
  int ranks() const override { return all_->ranks(); }
  // Returns the hosts of the ranks, and the descriptions of the groups of which
  // this rank is a member.
  std::string Describe() const override;
  void Abort() override { all_->Abort(); }

  // Returns this rank's memory that the other ranks of its host read in place,
  // like HostGroup::pool(). Returns null if there is no pool, or if this rank
  // is alone on its host.
  std::shared_ptr<Pool> pool() const;

 private:
  // Aborts the inner groups. A callback may hold a reference to this object
  // after the group was destroyed.
  class Ending;

  HierarchicalGroup(std::unique_ptr<NetGroup> all, Layout layout);

  // Returns INVALID_ARGUMENT on all ranks if their sizes differ.
  absl::Status ComparePools(uint64_t pool_bytes);
  absl::Status FormHost(const NetGroupOptions& options, uint64_t pool_bytes);
  absl::Status FormLeaders(const ListenerOptions& listener_options,
                           NetGroupOptions options);

  absl::Status Run(const Call& call, const void* in, void* out) override;
  absl::Status SendLetter(const Letter& letter, const void* data) override;
  absl::Status ReceiveLetter(const Letter& letter, void* data) override;

  // Return the error of a phase, with ranks of this group.
  absl::Status RunPhases(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AllReducePhases(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status BroadcastPhases(const Call& call, void* data)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AllGatherPhases(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReduceScatterPhases(const Call& call, const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status BarrierPhases(const Call& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  bool is_leader() const { return layout_.place_of[rank()] == 0; }
  const std::vector<int>& neighbours() const {
    return layout_.ranks_of[layout_.host_of[rank()]];
  }
  // Return the status with each inner rank replaced by the rank of this group.
  absl::Status OfHost(const absl::Status& status) const;
  absl::Status OfLeaders(const absl::Status& status) const;
  // Ends the group on all ranks. Returns the error that ended the group first.
  absl::Status End(const absl::Status& status);

  const Layout layout_;
  const std::unique_ptr<NetGroup> all_;
  std::unique_ptr<HostGroup> host_;    // null if alone on its host
  std::unique_ptr<NetGroup> leaders_;  // null unless this rank is a leader
  const std::shared_ptr<Ending> ending_;
  base::Mutex mu_;  // held by one operation
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HIERARCHICAL_GROUP_H_
