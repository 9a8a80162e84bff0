// The replica that accepts the pushes of a shard.

#ifndef PENSTOCK_PS_REPLICATION_PRIMARY_H_
#define PENSTOCK_PS_REPLICATION_PRIMARY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/replication/holdings.h"
#include "ps/replication/lease.h"
#include "ps/replication/messages.h"
#include "ps/replication/push_history.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// The primary of one shard in one view. Created and destroyed by Replica.
//
// An accepted push is an entry of the log. The entry is
//
//   committed     once the primary has begun and all replicas that count hold
//                 it: the backups, and joiners that have nearly caught up
//   acknowledged  by the caller, while MayAnswer() is true
//   applied       by the caller, in order, once it is committed
//   forgotten     once it is applied, and no joiner waits for it
//
// A new primary may still be bound by a promise to another primary, and begins
// when that promise ends. Until then it accepts pushes and sends entries, but
// commits nothing.
//
// Synchronous tables: the caller either accepts each push as an entry, as
// ps/shards does. Or the caller collects the gradients of a step, and accepts
// their aggregate as one entry with all pushes of the step; these pushes are
// then acknowledged together. If the primary dies before, the workers push
// again, to its successor. The successor recognises the pushes if it has the
// entry, and otherwise computes the step again.
//
// Memory: the log has at most Options::max_log_bytes. Above this limit, pushes
// are refused, and workers send them again later. First, joiners that are
// behind lose their progress, and start again with a snapshot. Overdue() names
// backups that delay the others, so that the owner of the views drops them. A
// backup that keeps up with the pushes is never named, however far behind it
// is.
//
// Pure: no clock, no thread, no I/O. Not thread-safe. The caller passes the
// time, and sends what Next() and MakeSnapshot() return.
class Primary {
 public:
  // Requires a view in which `options.self` is the primary, and complete
  // holdings.
  Primary(const Options& options, const View& view, Holdings holdings,
          absl::Time now);

  // Compares a push or join with all entries of the log. The answer to a
  // repeated push or join is sent once the entry Judgement::seq may be
  // acknowledged.
  PushHistory::Judgement Judge(const WorkerPush& push) const {
    return accepted_.Judge(push);
  }
  PushHistory::Judgement JudgeJoin(const WorkerId& worker) const {
    return accepted_.JudgeJoin(worker);
  }
  // Returns the worker of a rank, with the clock after the rank's last accepted
  // push. A worker that joins starts at this clock.
  absl::optional<RankClock> ClockOf(uint32_t rank) const {
    return accepted_.ClockOf(rank);
  }
  // Accept pushes, or a join, that were judged kNew. At most one push may be of
  // one rank. Return the sequence number of the entry. Return INVALID_ARGUMENT
  // for an entry that can never fit. Return RESOURCE_EXHAUSTED, with the
  // replica that is behind, if the log is full.
  absl::StatusOr<uint64_t> Accept(std::vector<WorkerPush> pushes,
                                  std::shared_ptr<const Payload> payload,
                                  absl::Time now);
  absl::StatusOr<uint64_t> Join(const WorkerId& worker, absl::Time now);

  // Returns true if this replica is certainly the only primary at `now`. Call
  // immediately before each answer to a worker, also before a refusal, because
  // a deposed primary does not know the latest joins and pushes.
  bool MayAnswer(absl::Time now);
  // Returns true once no promise to another primary binds this replica.
  bool has_begun() const { return has_begun_; }
  // Returns the last entry whose pushes may be acknowledged, if MayAnswer().
  uint64_t committed() const { return holdings_.committed; }
  // Returns true if the values include each push that earlier primaries have
  // acknowledged. A pull that must see all acknowledged pushes first reads
  // committed(), and waits for this function and until the entries up to that
  // number are applied. The pull's caller then calls MayAnswer().
  bool HasAppliedInherited() const { return holdings_.applied >= inherited_; }
  void Applied();  // see Replica::Applied()

  // Returns the next message for a replica of the view, or nullopt if there is
  // nothing new to send. Returns each entry once, until Resend().
  absl::optional<Append> Next(const ReplicaId& to, absl::Time now);
  // Returns a message even if there is nothing new to send. The message renews
  // the lease, and detects lost messages. Call several times within a lease.
  // Returns nullopt only for a replica that is not in the view.
  absl::optional<Append> Heartbeat(const ReplicaId& to, absl::Time now);
  // Makes Next() return the unanswered messages of the replica again. Call
  // after the connection broke, or if no answer came.
  void Resend(const ReplicaId& to);
  // Records that a snapshot was lost. The replica gets another snapshot if it
  // still needs one.
  void LoseSnapshot(const ReplicaId& to);
  // Returns the joiners that need a snapshot. The caller copies the values as
  // of the last applied entry, and calls MakeSnapshot(). From then on, the log
  // keeps later entries for the joiner.
  std::vector<ReplicaId> WantSnapshot() const;
  absl::optional<Snapshot> MakeSnapshot(const ReplicaId& to,
                                        std::shared_ptr<const Payload> values,
                                        absl::Time now);
  // Returns the message for the present view if the replica still waits for
  // this snapshot. Otherwise returns nullopt.
  absl::optional<Snapshot> RenewSnapshot(const ReplicaId& to, Snapshot message,
                                         absl::Time now);
  void OnAnswer(const Answer& answer, absl::Time now);
  // Call this function if time has passed without another call.
  void Tick(absl::Time now) { Commit(now); }

  // Returns the other replicas of the view.
  std::vector<ReplicaId> Peers() const;
  // Returns the joiners that have all entries and know it. WithBackup() may
  // make them backups, but only in the view directly after this primary's view.
  std::vector<ReplicaId> Complete() const;

  struct Complaint {
    ReplicaId replica;
    std::string reason;  // for people
  };
  // Returns the replicas that delay the others. The owner of the views drops
  // these replicas by WithoutReplica().
  std::vector<Complaint> Overdue(absl::Time now) const;

  // Changes to a newer view in which this replica is still the primary. Joiners
  // keep their progress: the snapshot, or the entries after it.
  void OnView(const View& view, absl::Time now);

  const Holdings& holdings() const { return holdings_; }
  // Ends this role, because the replica becomes a backup. Returns its state.
  // Entries that are not committed stay until the new primary sends other
  // entries with the same numbers.
  Holdings Release() { return std::move(holdings_); }

 private:
  struct Peer {
    bool is_backup = false;
    bool counts = false;     // commits wait for it
    bool confirmed = false;  // the peer knows that it is complete
    enum { kUnknown, kWantsSnapshot, kGetsSnapshot, kFollows } state = kUnknown;
    uint64_t held = 0;
    uint64_t sent = 0;
    uint64_t told = 0;     // `committed` of the last message
    uint64_t kept = 0;     // of a joiner: later entries are kept for it
    absl::Time heard;      // of the last answer
    int unanswered = 0;    // heartbeats since
    absl::Time advanced;   // when `held` last rose, or nothing was missing
    int idle_answers = 0;  // since
  };

  void SetPeers(const View& view, absl::Time now);
  void AddPeer(const ReplicaId& id, bool is_backup, absl::Time now);
  // Gives a joiner the progress that it had in the previous view.
  void KeepPlace(const Peer& before, Peer* peer) const;
  absl::StatusOr<uint64_t> AcceptEntry(Entry entry, absl::Time now);
  absl::Status MakeRoom(size_t bytes, absl::Time now);
  bool DropOnePlace();
  void TakeHeld(const Answer& answer, Peer* peer, absl::Time now);
  void Place(const Answer& answer, Peer* peer);
  bool IsNearlyThere(const Peer& peer) const;
  void Commit(absl::Time now);
  void Forget();
  Append MakeAppend(Peer* peer, absl::Time now);
  Envelope MakeEnvelope() const;
  // Returns the counting replica that holds the fewest entries, or null.
  const std::pair<const ReplicaId, Peer>* Slowest() const;

  const Options options_;
  uint64_t view_;
  Holdings holdings_;
  PushHistory accepted_;  // of all entries of the log
  uint64_t inherited_;    // the last entry of earlier views
  bool has_begun_ = false;
  Lease lease_;
  std::map<ReplicaId, Peer> peers_;
  std::vector<ReplicaId> counting_;  // subset of peers_: Peer::counts
  // The time since which pushes have been refused; InfiniteFuture if none was
  // refused.
  absl::Time full_since_ = absl::InfiniteFuture();
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_PRIMARY_H_
