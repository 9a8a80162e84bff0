// Chooses and follows the views of a training, through etcd.

#ifndef PENSTOCK_PS_VIEWS_KEEPING_H_
#define PENSTOCK_PS_VIEWS_KEEPING_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/etcd/cancel.h"
#include "ps/etcd/mirror.h"
#include "ps/membership/membership.h"
#include "ps/replication/view.h"
#include "ps/replication/view_follower.h"
#include "ps/replication/view_keeper.h"
#include "ps/views/board.h"
#include "ps/views/proposer.h"
#include "ps/views/view_watch.h"
#include "transport/base/recent_lines.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::views {

// The time after which etcd forgets a silent server: etcd's shortest lease. If
// a primary dies, its shard continues when this time and the primary's own
// lease have passed; both run at the same time.
constexpr absl::Duration kTimeToLive = absl::Seconds(2);

// The interval at which a lasting error is logged again.
constexpr absl::Duration kWarnEvery = absl::Minutes(1);

// One server process's share in choosing the views. A thread follows etcd,
// applies each new view to the process's replicas, and proposes the next view
// when ViewKeeper returns one.
//
// | Event                       | What happens                                |
// |-----------------------------|---------------------------------------------|
// | etcd is unreachable         | views stay as they are; log                 |
// | this server registers       | others count as dead only after `settle`,   |
// |                             | or once all replicas of the view were       |
// |                             | registered: until then, they may be about   |
// |                             | to register too                             |
// | the follower refuses a view | is asked again each round; log              |
// | etcd's view goes back       | the newest one stays in force; log          |
// | another process proposes    | one of the proposals is taken, and both     |
// | a view at the same time     | processes follow that one                   |
class Keeping {
 public:
  struct Options {
    // The registered server. Must outlive this object.
    membership::Membership* member = nullptr;
    // The server's replicas. The thread calls this object. Must outlive the
    // Keeping.
    replication::ViewFollower* follower = nullptr;
    // The board to which new views are posted. Must outlive this object.
    Board* board = nullptr;
    size_t backups = 1;  // the number of backups for each shard
    absl::Duration settle = 2 * kTimeToLive;
    absl::Duration round = absl::Milliseconds(100);
    // Called with a line for each new view, and with a line for each error,
    // repeated every kWarnEvery while the error lasts. May be empty.
    std::function<void(const std::string& line)> log;
  };

  explicit Keeping(const Options& options);
  // May block for some seconds, while a proposal waits for etcd.
  ~Keeping();
  Keeping(const Keeping&) = delete;
  Keeping& operator=(const Keeping&) = delete;

 private:
  void ThreadLoop();
  // Reads changes from etcd, and proposes a view if one is due.
  void Round();
  void Follow(const etcd::Values& values);
  // Returns the addresses of the servers with a place in the training. Returns
  // none if a new run is about to begin.
  std::vector<std::string> Places() const;
  void NameStrangers(const std::vector<replication::ReplicaId>& strangers);
  // Logs the names of the drained servers without which a training cannot
  // begin.
  void WarnOfLeaving(const replication::ViewKeeper::Knowledge& knowledge);
  void MoveReplicas();
  // Returns true if this server knows which servers are dead: it has been
  // registered for long enough, or has seen all replicas registered since.
  bool SeesDeaths(const std::vector<replication::ReplicaId>& live,
                  absl::Time now);
  // Proposes a view. `marks` is the revision of the known marks of leaving
  // servers.
  void Propose(const replication::View& next,
               const std::vector<replication::ReplicaId>& live, int64_t marks);
  void Publish(const replication::ViewKeeper::Knowledge& knowledge);
  // Returns the reason why the views do not follow etcd now; OK if they do.
  absl::Status EtcdStatus() const;
  // Wakes the thread, which reads etcd's state again.
  void Wake() ABSL_LOCKS_EXCLUDED(mu_);
  // Logs an error, unless the same error was just logged.
  void Warn(absl::string_view what, const absl::Status& status);

  const Options options_;
  // The members below, up to `mu_`, are used by the thread only.
  replication::ViewKeeper keeper_;
  NewestView newest_;
  uint64_t followed_ = 0;  // the number of the view that the follower has
  absl::optional<absl::Time> registered_since_;
  base::RecentLines warnings_{kWarnEvery};
  absl::Mutex mu_;
  base::SteadyCondVar changed_;
  bool is_changed_ ABSL_GUARDED_BY(mu_) = false;
  bool stop_ ABSL_GUARDED_BY(mu_) = false;
  // These call Wake().
  std::unique_ptr<etcd::Mirror> mirror_;
  std::unique_ptr<Proposer> proposer_;
  std::thread thread_;  // starts last
};

}  // namespace penstock::ps::views

#endif  // PENSTOCK_PS_VIEWS_KEEPING_H_
