// One replica of a shard, through all views.

#ifndef PENSTOCK_PS_REPLICATION_REPLICA_H_
#define PENSTOCK_PS_REPLICATION_REPLICA_H_

#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/optional.h"
#include "ps/replication/backup.h"
#include "ps/replication/holdings.h"
#include "ps/replication/primary.h"
#include "ps/replication/push_history.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// One server's replica of one shard. The view decides its role:
//
//   state    event                              next
//   -------  ---------------------------------  -------------------------------
//   any      a view in which it is the primary  primary, if it is complete;
//                                               else none, with DATA_LOSS
//   any      a view in which it is a backup     backup
//   any      a view in which it is a joiner     backup, and no more complete
//   any      a view without it                  none, and no more complete
//   any      an older view, another run, or a   unchanged, with
//            second view of one number          FAILED_PRECONDITION
//
// A primary that stays primary keeps the entries that it has accepted. A
// complete backup or joiner has each acknowledged push. A backup that becomes
// the primary therefore continues with its own log.
//
// Pure: no clock, no thread, no I/O. Not thread-safe.
class Replica {
 public:
  // Makes a replica without values. A joiner gets them from its primary.
  explicit Replica(const Options& options);
  // Makes a replica with the first values of the run. All servers have the same
  // first values, from one chief or one checkpoint. `history` has the
  // checkpoint's clocks. `leads` is true if the replica is the primary of view
  // 1, and thus complete.
  Replica(const Options& options, PushHistory history, bool leads);

  // Moves to a view, as in the table. Entries and values stay. Returns
  // INVALID_ARGUMENT, and changes nothing, if CheckView() finds a flaw.
  absl::Status OnView(const View& view, absl::Time now);

  // Return the replica's role, or null. Valid until the next OnView().
  Primary* primary() { return primary_.get(); }
  Backup* backup() { return backup_.get(); }
  // Return the next entry to apply, or null, and record that the entry was
  // applied. Both work in every role.
  EntryPtr NextToApply() const { return holdings().NextToApply(); }
  void Applied();
  const Holdings& holdings() const;
  // Returns the number of the view; 0: none yet.
  uint64_t view() const { return view_.number; }

 private:
  absl::Status CheckNew(const View& view) const;
  void TakeBack();
  absl::Status Begin(absl::Time now);

  const Options options_;
  View view_;
  Holdings holdings_;  // while there is neither of:
  std::unique_ptr<Primary> primary_;
  std::unique_ptr<Backup> backup_;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_REPLICA_H_
