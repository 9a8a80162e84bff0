// The accepted pushes of a shard, in the order of acceptance.

#ifndef PENSTOCK_PS_REPLICATION_LOG_H_
#define PENSTOCK_PS_REPLICATION_LOG_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "ps/consistency/membership.h"

namespace penstock::ps::replication {

// The push by which a worker ends its step `clock`.
struct WorkerPush {
  WorkerId worker;
  uint64_t clock = 0;  // below kMaxClock
};

// The bytes of an entry, or of a snapshot. Immutable. Only the caller knows the
// type; replication does not read the bytes.
class Payload {
 public:
  virtual ~Payload() = default;
  virtual size_t bytes() const = 0;
};

// One change of a shard, which all replicas make in the same order:
//
//   push    one push, with its gradients; or the pushes of a step, with their
//           aggregate, which ps/shards does not use
//   join    a worker takes a rank; no payload
//   other   a payload without a push, which changes the members
struct Entry {
  uint64_t seq = 0;   // from 1 on, without gaps
  uint64_t view = 0;  // in which the entry was accepted
  std::vector<WorkerPush> pushes;
  absl::optional<WorkerId> joins;
  std::shared_ptr<const Payload> payload;

  // Returns the memory that the entry costs a replica.
  size_t bytes() const {
    return sizeof(Entry) + pushes.size() * sizeof(WorkerPush) +
           (payload == nullptr ? 0 : payload->bytes());
  }
};

using EntryPtr = std::shared_ptr<const Entry>;

// Consecutive entries, from first() to last(). Also stores the view of the
// entry before first(), so that another replica's log can be compared from
// first() on.
//
// Two entries with the same sequence number and view are the same entry, since
// a view has one primary for each shard.
class Log {
 public:
  // Makes an empty log that begins after entry `seq` of view `view`.
  explicit Log(uint64_t seq = 0, uint64_t view = 0)
      : before_(seq), view_before_(view) {}

  uint64_t first() const { return before_ + 1; }
  // Returns the last sequence number; first() - 1 if the log is empty.
  uint64_t last() const { return before_ + entries_.size(); }
  size_t bytes() const { return bytes_; }
  bool Has(uint64_t seq) const { return seq > before_ && seq <= last(); }
  // Requires Has(seq).
  const EntryPtr& At(uint64_t seq) const { return entries_[seq - before_ - 1]; }
  // Returns the view of an entry from first() - 1 to last(). Returns nullopt
  // for other entries.
  absl::optional<uint64_t> ViewAt(uint64_t seq) const;

  // Requires entry->seq == last() + 1.
  void Append(EntryPtr entry);
  // Removes the entries with higher sequence numbers.
  void TruncateAfter(uint64_t seq);
  // Removes the entry `seq` and those before it.
  void DiscardThrough(uint64_t seq);

 private:
  uint64_t before_;
  uint64_t view_before_;
  std::deque<EntryPtr> entries_;
  size_t bytes_ = 0;
};

}  // namespace penstock::ps::replication

#endif  // PENSTOCK_PS_REPLICATION_LOG_H_
