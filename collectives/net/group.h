// A group of ranks on any hosts, over Penstock's connections.

#ifndef PENSTOCK_COLLECTIVES_NET_GROUP_H_
#define PENSTOCK_COLLECTIVES_NET_GROUP_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/group.h"
#include "collectives/letter.h"
#include "collectives/net/ledger.h"
#include "collectives/net/letters.h"
#include "collectives/net/links.h"
#include "collectives/net/listener.h"
#include "collectives/net/loans.h"
#include "collectives/net/targets.h"
#include "collectives/net/window.h"
#include "collectives/operand_memory.h"
#include "collectives/schedule/choice.h"
#include "collectives/schedule/schedule.h"
#include "tensor_service/dtype.h"
#include "transport/base/mutex.h"

namespace penstock::collectives {

// Limits the ranks of a group: each has two connections with each other rank.
inline constexpr int kMaxNetRanks = 256;

struct NetGroupOptions {
  int rank = 0;
  // Limits the time in which the group is formed.
  absl::Duration forming_timeout = absl::Minutes(1);
  // Limits each wait of an operation for other ranks.
  absl::Duration timeout = absl::Minutes(30);
  // The algorithms to use, in the syntax of ParseOverrides(). Must be equal on
  // all ranks, like the costs below.
  std::string algorithms;
  // The cost of a message between two ranks of a host: a store into shared
  // memory, and two wake-ups. An assumption, as choice.h explains.
  LinkCosts inside_host = {10, 1 / 4e3};
  LinkCosts between_hosts = kTcp;
  // The kinds of device memory in which operands may be. The first one that has
  // an operand copies and reduces that operand. Operands in none of them are in
  // the host's memory. The objects must outlive the group.
  std::vector<OperandMemory*> memories;
};

struct Operands;

// Ranks that exchange messages. Each pair of ranks agrees on its path: shared
// memory, verbs or tcp.
//
//  Reductions are in the order of the schedule, which depends on the operation,
// its size, the hosts of the ranks, and the options above.
class NetGroup final : public Group {
 public:
  // Forms the group. `addresses` has the addresses of all ranks, in the order
  // of the ranks, and must be equal on all ranks. Returns once all ranks have
  // called. Returns DEADLINE_EXCEEDED, with the missing ranks, if some ranks do
  // not call in time.
  static absl::StatusOr<std::unique_ptr<NetGroup>> Form(
      std::unique_ptr<Listener> listener,
      const std::vector<std::string>& addresses,
      const NetGroupOptions& options);

  // Waits up to four seconds for peers to receive what this rank has sent.
  ~NetGroup() override;

  int rank() const override { return ledger_->rank(); }
  int ranks() const override { return ledger_->ranks(); }
  // Returns text for people. The first line lists the path to each other rank.
  // Each planned operation adds a line with the chosen algorithm and its
  // estimated time, and with the estimated times of the other algorithms.
  std::string Describe() const override;
  void Abort() override;

  // The following functions are for groups that consist of several groups.
  //
  //  Returns an error in the child of a fork. Takes no lock.
  absl::Status CheckOwner() const;
  // Counts an operation that runs outside this group. If another rank runs an
  // operation over this group instead, the two calls are then detected as a
  // mismatch.
  absl::Status Begin(const Call& call);
  // Runs `phase`, a part of the operation `whole`. The ranks compare whether
  // they call the same `whole`.
  absl::Status RunPhase(const Call& whole, const Call& phase, const void* in,
                        void* out);
  // Ends the group on all ranks with `status`, unless it has ended. Returns the
  // error that ended the group.
  absl::Status End(const absl::Status& status);
  // Waits until the group has ended, for at most `most`. Returns the group's
  // error, or OK.
  absl::Status AwaitEnd(absl::Duration most);
  // Calls `ended` once when the group has ended, on any thread.
  void OnEnd(std::function<void()> ended) { ledger_->OnEnd(std::move(ended)); }

 private:
  // A schedule, and how it was chosen.
  struct Planned {
    std::string description;
    Schedule schedule;
    int64_t extent = 0;  // elements of the buffer
  };
  // The operation, its root, its count, and the size of an element.
  using PlanKey = std::tuple<Operation, int, int64_t, int64_t>;

  NetGroup(std::unique_ptr<Listener> listener, std::shared_ptr<Ledger> ledger,
           std::shared_ptr<Targets> targets, std::unique_ptr<Links> links,
           std::vector<int> hosts, const NetGroupOptions& options,
           Overrides overrides);

  absl::Status Run(const Call& call, const void* in, void* out) override;
  absl::Status SendLetter(const Letter& letter, const void* data) override;
  absl::Status ReceiveLetter(const Letter& letter, void* data) override;
  // Returns INVALID_ARGUMENT if `data` is in the memory of a device.
  absl::Status CheckOnHost(const void* data) const;
  absl::Status RunLocked(const CallWords& words, const Call& call,
                         const void* in, void* out)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<const Planned*> PlanOf(const Call& call)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns the memory that has both `in` and `out`. Null is in any memory.
  absl::StatusOr<OperandMemory*> MemoryOfBoth(const void* in,
                                              const void* out) const;
  absl::Status Execute(const CallWords& words, const Call& call,
                       const Planned& planned, Operands* operands)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends all use of the operands by connections, after an error. Disconnects
  // from peers that do not receive the memory that is lent to them, or do not
  // finish sending parts.
  void FreeOperands() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the group because of an error of this rank alone.
  absl::Status Fail(const absl::Status& status);
  // Tells the peers why the group has ended, once.
  void Report();

  const NetGroupOptions options_;
  const Overrides overrides_;
  const uint32_t fork_count_;
  const std::vector<int> hosts_;
  std::unique_ptr<Listener> listener_;
  const std::shared_ptr<Ledger> ledger_;
  const std::shared_ptr<Targets> targets_;  // empty between operations
  std::unique_ptr<Links> links_;
  Letters letters_;
  const std::shared_ptr<Loans> loans_;  // empty between operations

  mutable base::Mutex mu_;
  std::vector<std::shared_ptr<Window>> windows_ ABSL_GUARDED_BY(mu_);
  uint64_t number_ ABSL_GUARDED_BY(mu_) = 0;  // of the last operation
  std::map<PlanKey, Planned> plans_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_GROUP_H_
