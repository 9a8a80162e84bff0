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
  // Limits the bytes of entries in one message, if it has several.
  size_t max_message_bytes = size_t{1} << 20;
  // Limits the bytes that a joiner may lack when commits begin to wait for it.
  // At 1 GB/s this delays pushes by 64 ms.
  size_t max_lag_bytes = size_t{64} << 20;
  // The time without an answer, or without progress, after which the primary
  // complains about a backup. Longer than a lease, so that a lost message is
  // repeated before.
  absl::Duration patience = absl::Seconds(3);
};

// The values of a shard belong to the caller, who applies committed entries to
// them, in order. No entry is applied before all counting replicas hold it.
// Therefore applied entries are never taken back, and a replica keeps its
// values when it changes its role.
struct Holdings {
  bool has_values = false;
  // The replica has each entry that was ever acknowledged, and may become the
  // primary.
  bool complete = false;
  // All entries after `applied`, and possibly some earlier ones.
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
