// The messages between the replicas of a shard.

#ifndef PENSTOCK_PS_REPLICATION_MESSAGES_H_
#define PENSTOCK_PS_REPLICATION_MESSAGES_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "ps/replication/lease.h"
#include "ps/replication/log.h"
#include "ps/replication/push_history.h"
#include "ps/replication/view.h"

namespace penstock::ps::replication {

// The properties that must be equal at all replicas of a shard.
struct Group {
  uint64_t run = 0;
  uint64_t model = 0;  // fingerprint of the model
  // The version of the code that applies entries. Different versions may round
  // differently, and replicas would no longer be equal bit by bit.
  std::string build;
  uint32_t shard = 0;  // index in View::shards
};

// Returns FAILED_PRECONDITION, which names the difference, unless both are the
// same group.
absl::Status CheckSameGroup(const Group& mine, const Group& theirs);

// The fields that all messages have.
struct Envelope {
  Group group;
  ReplicaId from;
  uint64_t view = 0;
};

// A message from a primary: entries, and which earlier entries were committed.
// Without entries, the message is a heartbeat.
struct Append {
  Envelope envelope;
  // The number of the entry before the first of `entries`.
  uint64_t prev_seq = 0;
  uint64_t prev_view = 0;
  std::vector<EntryPtr> entries;
  // The number of the last entry that all counting replicas have.
  uint64_t committed = 0;
  // True if the primary counts the receiver, which has all committed entries.
  bool complete = false;
  LeaseStamp stamp;
  absl::Duration lease;
};

// From a primary to a joiner: the values after entry `seq`.
struct Snapshot {
  Envelope envelope;
  uint64_t seq = 0;
  uint64_t seq_view = 0;
  PushHistory history;  // of the entries up to `seq`
  std::shared_ptr<const Payload> values;
  LeaseStamp stamp;
  absl::Duration lease;
};

// The answer to an Append or a Snapshot.
struct Answer {
  Envelope envelope;
  // The reason why the message was refused. OUT_OF_RANGE means that entries
  // before the message are missing.
  absl::Status status;
  // The number of the last entry of the primary's log that the receiver has.
  uint64_t held = 0;
  // True if the receiver has no values and needs a snapshot.
  bool is_empty = false;
  // True if the receiver knows that it is complete.
  bool complete = false;
  LeaseStamp stamp;  // of the message
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_MESSAGES_H_
