// One replica of a shard: its log, its server, and the calls of workers.

#ifndef PENSTOCK_PS_SHARDS_SHARD_H_
#define PENSTOCK_PS_SHARDS_SHARD_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/replication/replica.h"
#include "ps/replication/view_follower.h"
#include "ps/server/calls.h"
#include "ps/server/cancellation.h"
#include "ps/server/server.h"
#include "ps/shards/entry.h"
#include "ps/shards/peers.h"
#include "ps/shards/wire.h"

namespace penstock::ps {

// The settings that all shards of a process share.
struct ShardOptions {
  // Creates a server for the values of another server. The options of its
  // membership are those of ForReplica().
  std::function<std::unique_ptr<Server>()> new_server;
  // Sends messages to the other replicas. Outlives the shards.
  Peers* peers = nullptr;
  // The times of the workers' membership, which the primary keeps itself.
  absl::Duration worker_lease = absl::Seconds(10);
  absl::Duration assemble_timeout = absl::Seconds(60);
  // The time between two heartbeats to a replica is a quarter of the lease.
  replication::LeaseTimes lease;
  size_t max_log_bytes = size_t{4} << 30;
  // Limits the bytes of values that a primary may send here.
  size_t max_snapshot_bytes = size_t{64} << 30;
  // The version of the program. All replicas need the same.
  std::string build;
  // Called with lines for people. If empty, they go to Penstock's log.
  std::function<void(const std::string&)> log;
};

// A server under a log. The primary checks each push, puts it into the log, and
// sends the log to the backups. Each replica feeds committed entries to its
// Server, one after another, so all Servers take the same calls in the same
// order. The primary answers a worker with the verdict of its own Server, while
// no other server can be the primary.
//
//   call        at the primary                          elsewhere
//   ----------  --------------------------------------  -----------
//   push        checked, logged, committed, fed         UNAVAILABLE
//   join        logged, committed, fed                  UNAVAILABLE
//   pull        answered by the Server, which has been  UNAVAILABLE
//               fed all entries of earlier primaries
//   heartbeat   renews the worker's lease               UNAVAILABLE
//   leave,      logged                                  ignored
//   lost
//
// The message of each UNAVAILABLE begins with kNotPrimary. A call that waits
// when another server becomes the primary ends so, too.
//
// "Fed" means that the Server has taken or refused the entry. "Applied" means
// that its values have it: a synchronous step is applied once it is complete.
// The log keeps entries until they are applied.
//
// No entry depends on time. The primary turns the end of a worker's lease into
// an entry, and the Servers have endless leases.
//
// A server whose training has failed leaves the shard to a backup, if there is
// one: it feeds and answers nothing any more.
//
// Thread-safe. Whichever thread changes the state calls Pump(), which wakes the
// thread of this object. The thread sends, feeds and answers what has become
// possible. Callbacks run without locks.
class Shard final : public Calls, public std::enable_shared_from_this<Shard> {
 public:
  // Only for std::make_shared(): callbacks keep the object alive. Makes a
  // replica of `group` for the server `self`. `first` has the first
  // values of the run, or is null: the primary then sends a snapshot. `leads`:
  // this replica is the primary of its first view.
  Shard(const ShardOptions& options, const replication::Group& group,
        const replication::ReplicaId& self, std::shared_ptr<Server> first,
        bool leads);
  // Calls Stop().
  ~Shard() override;

  // Moves to a view. Returns the error of Replica::OnView(). Does not block.
  absl::Status OnView(const replication::View& view) ABSL_LOCKS_EXCLUDED(mu_);
  // Returns what the primary wishes; nullopt elsewhere.
  absl::optional<replication::ViewFollower::Wish> Wishes()
      ABSL_LOCKS_EXCLUDED(mu_);
  // Handles a message of another server. `callback` gets the answer, later if
  // values are restored.
  using AnswerCallback =
      std::function<void(absl::StatusOr<replication::Answer>)>;
  void Handle(ReplicateMessage message, AnswerCallback callback)
      ABSL_LOCKS_EXCLUDED(mu_);

  uint64_t StartJoin(const View& view, const WorkerId& worker,
                     JoinCallback callback) override;
  absl::Status Heartbeat(uint64_t run, const WorkerId& worker) override;
  void Leave(const WorkerId& worker, uint64_t run) override;
  void Lost(const WorkerId& worker, uint64_t run) override;
  uint64_t Push(const View& view, const WorkerId& worker, uint64_t clock,
                const tensor::Bundle& gradients, PushCallback callback,
                bool will_help) override;
  uint64_t Pull(const View& view, const Exchange::PullSpec& spec,
                PullCallback callback) override;
  void Help() override {}
  void Cancel(uint64_t ticket) override;

  // Returns the server if this replica is the primary, else the refusal.
  absl::StatusOr<std::shared_ptr<Server>> PrimaryServer()
      ABSL_LOCKS_EXCLUDED(mu_);
  // Returns the values that this replica holds in any role; may be null.
  std::shared_ptr<Server> server() ABSL_LOCKS_EXCLUDED(mu_);
  const replication::Group& group() const { return group_; }

  // Refuses all calls, and waits for the end of what was begun. Call Stop() of
  // the peers first.
  void Stop() ABSL_LOCKS_EXCLUDED(mu_);

 private:
  using Due = std::vector<std::function<void()>>;
  using End = std::function<void(absl::Status)>;

  // A push whose gradients were checked.
  struct Checked {
    std::shared_ptr<Exchange> exchange;
    Exchange::CheckedPush push;
  };
  // A worker's push, from its call to its answer.
  struct PushCall {
    View view;
    WorkerId worker;
    uint64_t clock = 0;
    tensor::Bundle gradients;
    uint64_t ticket = 0;
    absl::optional<Checked> checked;
    size_t held_bytes = 0;
  };
  using PushCallPtr = std::shared_ptr<PushCall>;
  // A worker's call that has no answer yet.
  struct Ticket {
    End end;  // ends the call with an error
    PushCallback push;
    PullCallback pull;
    JoinCallback join;
    std::shared_ptr<Server> server;  // of a pull
    uint64_t inner = 0;              // the server's ticket
  };
  // Something to do once entry `fed` was fed, or, if `is_answer`, once the
  // primary may answer.
  struct Parked {
    uint64_t fed = 0;
    bool is_answer = false;
    uint64_t ticket = 0;  // of the call
    std::function<void()> go;
  };
  // An entry that was fed and may not be applied.
  struct Fed {
    uint64_t seq = 0;
    absl::optional<replication::WorkerPush> push;  // a push that has counted
  };
  struct Link {
    bool is_busy = false;
    absl::Time heartbeat = absl::InfinitePast();  // when the next is due
    absl::Time retry = absl::InfinitePast();      // no message before
  };
  struct Incoming {
    uint64_t id = 0;
    uint64_t bytes = 0;
    std::deque<tensor::Tensor> pieces;
    std::shared_ptr<Server> restored;
    std::shared_ptr<Cancellation> cancellation;
  };
  using PushKey = std::pair<std::pair<uint32_t, uint64_t>, uint64_t>;

  // shard.cc
  void Pump() ABSL_LOCKS_EXCLUDED(mu_);
  void PumpLoop() ABSL_LOCKS_EXCLUDED(mu_);
  void CollectLocked(Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void CollectParkedLocked(absl::Time now, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void BeginReignLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndReignLocked(Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void ExpireWorkersLocked(absl::Time now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  replication::Primary* primary() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return is_stopped_ ? nullptr : replica_.primary();
  }
  absl::Status NotPrimaryLocked() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Say(const std::string& line) const;
  // Ends something that Stop() waits for, and that ++tracked_ began.
  void EndTracked() ABSL_LOCKS_EXCLUDED(mu_);

  // shard_feed.cc
  View training_view() ABSL_LOCKS_EXCLUDED(mu_);
  void CollectFeedLocked(absl::Time now, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::optional<Checked> TakeChecked(uint64_t seq) ABSL_LOCKS_EXCLUDED(mu_);
  void Feed(const replication::EntryPtr& entry,
            const std::shared_ptr<Server>& server) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until no entry is being fed, and keeps it so while the caller holds
  // mu_. Returns false after a timeout.
  bool AwaitIdleLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns true if the server's training has failed, and a backup can follow.
  bool LeavesToBackupLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void FeedPush(const replication::EntryPtr& entry,
                const std::shared_ptr<Exchange>& exchange)
      ABSL_LOCKS_EXCLUDED(mu_);
  void FeedEvent(const replication::EntryPtr& entry, Server* server);
  void OnPushFed(const replication::EntryPtr& entry,
                 const absl::StatusOr<Exchange::PushVerdict>& verdict)
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnJoinFed(const replication::EntryPtr& entry,
                 absl::StatusOr<Exchange::Joined> joined)
      ABSL_LOCKS_EXCLUDED(mu_);
  void EndFeedLocked(const replication::EntryPtr& entry, bool has_counted)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AddImageLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void PollAppliedLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void AdvanceLocked(const std::vector<RankClock>& clocks)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // shard_calls.cc
  uint64_t AddTicketLocked(Ticket ticket) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::optional<Ticket> TakeTicket(uint64_t ticket) ABSL_LOCKS_EXCLUDED(mu_);
  // Renews the lease of a worker that is, or becomes, a member.
  void NoteAliveLocked(const WorkerId& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndTicket(uint64_t ticket, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Lets `go` run once the primary may answer, and in no later reign.
  void AnswerWhenSure(uint64_t reign, uint64_t ticket, std::function<void()> go)
      ABSL_LOCKS_EXCLUDED(mu_);
  void CheckPush(const PushCallPtr& call, uint64_t reign)
      ABSL_LOCKS_EXCLUDED(mu_);
  void AcceptPush(const PushCallPtr& call, uint64_t reign)
      ABSL_LOCKS_EXCLUDED(mu_);
  void AnswerPush(uint64_t ticket,
                  absl::StatusOr<Exchange::PushVerdict> verdict)
      ABSL_LOCKS_EXCLUDED(mu_);
  void OnPulled(uint64_t ticket, uint64_t reign,
                absl::StatusOr<Exchange::Pulled> pulled)
      ABSL_LOCKS_EXCLUDED(mu_);
  void StartPull(uint64_t ticket, const View& view,
                 const Exchange::PullSpec& spec, uint64_t reign)
      ABSL_LOCKS_EXCLUDED(mu_);
  bool SubmitLocked(EventPayload::Kind kind, const WorkerId& worker)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Submit(EventPayload::Kind kind, const WorkerId& worker, uint64_t run)
      ABSL_LOCKS_EXCLUDED(mu_);

  // shard_messages.cc
  void CollectSendsLocked(absl::Time now, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Send(const replication::ReplicaId& to, const replication::Append& append,
            uint64_t generation) ABSL_LOCKS_EXCLUDED(mu_);
  void OnReply(const replication::ReplicaId& to, uint64_t generation,
               const absl::StatusOr<grpc::ByteBuffer>& reply)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status CheckFromPrimaryLocked(const replication::Envelope& envelope)
      const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  replication::Answer PlainAnswerLocked(absl::Status status) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::StatusOr<replication::Answer> TakePieceLocked(
      const ReplicateMessage& message) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void StartRestore(ReplicateMessage message, AnswerCallback callback)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<replication::Answer> TakeSnapshot(
      const ReplicateMessage& message) ABSL_LOCKS_EXCLUDED(mu_);

  // shard_snapshot.cc
  void CollectSnapshotLocked(absl::Time now, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendSnapshot(const replication::ReplicaId& to) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status TrySnapshot(const replication::ReplicaId& to,
                           const std::shared_ptr<Server>& server)
      ABSL_LOCKS_EXCLUDED(mu_);
  absl::StatusOr<std::pair<replication::Snapshot, MembersImage>> PlaceSnapshot(
      const replication::ReplicaId& to, const Server& server,
      const CutState& cut) ABSL_LOCKS_EXCLUDED(mu_);
  absl::Status SendPieces(const replication::ReplicaId& to,
                          const replication::Envelope& envelope,
                          const Server::Training& training,
                          ModelSnapshot snapshot, SnapshotState* state);
  // Calls a peer, and blocks until the answer. Returns the error of `request`,
  // if it is one.
  absl::StatusOr<replication::Answer> CallAndWait(
      const replication::ReplicaId& to,
      const absl::StatusOr<grpc::ByteBuffer>& request, absl::Duration timeout);

  const ShardOptions options_;
  const replication::Group group_;
  const replication::ReplicaId self_;
  // The server of the process, which this object does not drain; may be null.
  const Server* const own_;

  absl::Mutex mu_;
  replication::Replica replica_ ABSL_GUARDED_BY(mu_);
  replication::View view_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<Server> server_ ABSL_GUARDED_BY(mu_);
  View training_view_ ABSL_GUARDED_BY(mu_);  // of server_
  bool is_stopped_ ABSL_GUARDED_BY(mu_) = false;
  bool is_pumping_ ABSL_GUARDED_BY(mu_) = false;  // the thread runs
  bool wants_pump_ ABSL_GUARDED_BY(mu_) = false;
  absl::Status failure_ ABSL_GUARDED_BY(mu_);  // of the server's training
  // Threads, and callbacks that will come.
  int tracked_ ABSL_GUARDED_BY(mu_) = 0;

  // Feeding.
  uint64_t fed_ ABSL_GUARDED_BY(mu_) = 0;  // the last entry fed
  bool is_feeding_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time feed_retry_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  std::deque<Fed> unapplied_ ABSL_GUARDED_BY(mu_);
  int wants_idle_ ABSL_GUARDED_BY(mu_) = 0;  // callers of AwaitIdleLocked()
  // The members after an entry, for each entry from `applied` on that may have
  // changed them. Ascending.
  std::deque<std::pair<uint64_t, MembersImage>> images_ ABSL_GUARDED_BY(mu_);

  // As the primary.
  uint64_t reign_ ABSL_GUARDED_BY(mu_) = 0;  // rises when the role changes
  uint64_t inherited_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<uint64_t, Ticket> tickets_ ABSL_GUARDED_BY(mu_);
  uint64_t next_ticket_ ABSL_GUARDED_BY(mu_) = 1;
  std::deque<Parked> parked_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, PushCallPtr> pushes_ ABSL_GUARDED_BY(mu_);  // by entry
  std::map<uint64_t, uint64_t> joins_ ABSL_GUARDED_BY(mu_);  // ticket by entry
  std::map<PushKey, uint64_t> in_log_ ABSL_GUARDED_BY(mu_);  // entry not fed
  size_t checked_bytes_ ABSL_GUARDED_BY(mu_) = 0;            // of pushes_
  std::map<replication::ReplicaId, Link> links_ ABSL_GUARDED_BY(mu_);
  uint64_t generation_ ABSL_GUARDED_BY(mu_) = 0;  // of links_
  // When each member last gave a sign of life.
  std::map<std::pair<uint32_t, uint64_t>, absl::Time> alive_
      ABSL_GUARDED_BY(mu_);
  bool knows_members_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time start_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteFuture();

  // Snapshots.
  bool is_sending_snapshot_ ABSL_GUARDED_BY(mu_) = false;
  absl::Time snapshot_retry_ ABSL_GUARDED_BY(mu_) = absl::InfinitePast();
  // Keeps AdvanceLocked() from passing the cut of a snapshot.
  bool holds_applied_ ABSL_GUARDED_BY(mu_) = false;
  std::shared_ptr<Cancellation> sending_ ABSL_GUARDED_BY(mu_);
  Incoming incoming_ ABSL_GUARDED_BY(mu_);
  bool is_restoring_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock::ps

#endif  // PENSTOCK_PS_SHARDS_SHARD_H_
