// A replica that stores the entries that its primary has accepted.

#ifndef PENSTOCK_PS_REPLICATION_BACKUP_H_
#define PENSTOCK_PS_REPLICATION_BACKUP_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/replication/holdings.h"
#include "ps/replication/messages.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// A backup or joiner of one shard in one view. Created and destroyed by
// Replica. Answers each message of the primary:
//
//   a message                                 answer
//   ----------------------------------------  -----------------------------
//   of another run, model, build or shard     FAILED_PRECONDITION
//   of an older view                          FAILED_PRECONDITION: the
//                                             sender has been replaced
//   of a newer view                           UNAVAILABLE: the view has not
//                                             arrived here yet
//   not from the primary of the view          PERMISSION_DENIED
//   with a lease above kMaxLease              INVALID_ARGUMENT
//   whose entries are no list                 INVALID_ARGUMENT
//   after entries that are missing            OUT_OF_RANGE
//   that does not fit into max_log_bytes      RESOURCE_EXHAUSTED
//   otherwise                                 OK: the entries are held
//
// The first matching line decides. The last three lines extend this replica's
// promise to the primary (see Lease). A repeated or late message has no other
// effect.
//
// If this replica has an entry that the primary lacks, the entry is dropped
// when the primary's entry with the same sequence number arrives. No
// acknowledged push is lost, because the primary has the entries of all
// acknowledged pushes.
//
// Pure: no clock, no thread, no I/O. Not thread-safe.
class Backup {
 public:
  // Requires a view in which `options.self` is not the primary.
  Backup(const Options& options, const View& view, Holdings holdings);

  Answer OnAppend(const Append& message, absl::Time now);
  // Handles a snapshot. If the answer is OK and `message.seq` == applied(), the
  // caller replaces its values by those of the snapshot. A snapshot that is not
  // newer changes nothing.
  Answer OnSnapshot(const Snapshot& message, absl::Time now,
                    bool* replaces_values);

  void Applied();  // see Replica::Applied()

  const Holdings& holdings() const { return holdings_; }
  // Ends this role, because the replica's view changes. Returns its state.
  Holdings Release() { return std::move(holdings_); }

 private:
  absl::Status CheckSender(const Envelope& envelope,
                           absl::Duration lease) const;
  absl::Status Take(const Append& message);
  absl::Status TakeEntry(const EntryPtr& entry);
  Answer MakeAnswer(absl::Status status, const LeaseStamp& stamp) const;

  const Options options_;
  const uint64_t view_;
  const ReplicaId primary_;
  Holdings holdings_;
  // The number of the last entry up to which this log equals the primary's.
  uint64_t matched_;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_BACKUP_H_
