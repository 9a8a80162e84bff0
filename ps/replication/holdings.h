// The entries, clocks and promises of one replica, in any role.

#ifndef PENSTOCK_PS_REPLICATION_HOLDINGS_H_
#define PENSTOCK_PS_REPLICATION_HOLDINGS_H_

#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "ps/replication/lease.h"
#include "ps/replication/log.h"
#include "ps/replication/messages.h"
#include "ps/replication/push_history.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// The settings of one replica of a shard. All replicas have the same.
struct Options {
  Group group;
  ReplicaId self;
  LeaseTimes lease;
  // Limits the bytes of the log. As much as a server's default of
  // --held-gradients on a machine of 32 GiB.
  size_t max_log_bytes = size_t{4} << 30;
  // Limits the bytes of entries in one message. A message with a single entry
  // may be larger.
  size_t max_message_bytes = size_t{1} << 20;
  // The number of bytes that a joiner may lack when commits begin to wait for
  // the joiner. At 1 GB/s this delays pushes by 64 ms.
  size_t max_lag_bytes = size_t{64} << 20;
  // The time after which the primary complains about a backup that does not
  // answer or makes no progress. Longer than a lease, so that a lost message is
  // repeated first.
  absl::Duration patience = absl::Seconds(3);
};

// The state of a replica. The caller owns the values of the shard, and applies
// committed entries to them, in order. An entry is committed once all counting
// replicas have it. Therefore an applied entry is never undone, and a replica
// keeps its values when its role changes.
struct Holdings {
  bool has_values = false;
  // True if the replica has every acknowledged entry, and so may become the
  // primary.
  bool complete = false;
  // All entries after `applied`. May also have earlier ones.
  Log log;
  uint64_t committed = 0;
  uint64_t applied = 0;
  PushHistory applied_history;
  Promises promises;

  // Returns the next entry to apply, or null. Call Applied() afterwards.
  EntryPtr NextToApply() const {
    return applied < committed ? log.At(applied + 1) : nullptr;
  }
  void Applied() {
    ++applied;
    applied_history.Record(*log.At(applied));
  }
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_HOLDINGS_H_
