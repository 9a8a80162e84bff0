// The state of a group at one rank: the parts that have arrived, and the ranks
// that have died, stopped or left.

#ifndef PENSTOCK_COLLECTIVES_NET_LEDGER_H_
#define PENSTOCK_COLLECTIVES_NET_LEDGER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "collectives/call.h"
#include "collectives/fault.h"
#include "collectives/net/message.h"
#include "collectives/net/signal.h"
#include "collectives/net/window.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"

namespace penstock::collectives {

// The elements of a part that has arrived.
struct Part {
  CallWords words = {};
  memory::Payload payload;
  // Tells the sender that this rank has room for more parts. Null once this was
  // done.
  std::function<void()> acknowledge;
};

// The events of a group at one rank. The callback thread of transport/rpc
// records events, and the threads that run operations wait for them.
//
//  The first fault ends the group. All later calls of status() return it.
//
//  Thread-safe. Calls no foreign function while holding its lock.
class Ledger {
 public:
  // Limits the parts from a peer that no operation has used yet, in bytes as
  // CostOfPart() counts. Parts beyond the limit are acknowledged only when an
  // operation uses them. The peer waits for acknowledgements; see window.h.
  static constexpr int64_t kMaxUntaken = 8 * 1024 * 1024;
  // Ends the group if a peer sends more than this, although nothing was
  // acknowledged. Penstock's own ranks stop long before: each operation, and
  // each thread that sends a large message, has at most Execution::kWindow in
  // flight.
  static constexpr int64_t kMostUntaken = int64_t{4} << 30;

  Ledger(int rank, int ranks, progress::PollingMode polling);

  int rank() const { return rank_; }
  int ranks() const { return static_cast<int>(peers_.size()); }
  Signal& signal() { return signal_; }

  // Record events. `from` must be a rank of the group.
  void OnHello(int from);
  void OnPart(int from, const Key& key, Part part);
  void OnNotice(int from, uint64_t number, const CallWords& words);
  void OnFailure(int from, const Message& failure);
  void OnLeave(int from, uint64_t last_number);
  // Records that the connection to a peer has ended.
  void OnGone(int peer, Fault fault);

  // Begins operation `number` of this rank: compares the operation with the
  // calls of the other ranks. Returns the error that ends the group.
  absl::Status Begin(uint64_t number, const CallWords& words);
  // Returns a part and removes it. Returns nothing if the part has not arrived.
  absl::optional<Part> Take(int from, const Key& key);
  // Drops and acknowledges the parts of collective operation `number`.
  void Drop(uint64_t number);
  // Returns true if `peer` has left before it began operation `number`. For
  // kAnyOperation, returns true if `peer` has left at any time.
  static constexpr uint64_t kAnyOperation =
      std::numeric_limits<uint64_t>::max();
  bool HasLeft(int peer, uint64_t number) const;
  // Returns true once the connection to `peer` has ended, so that no answer can
  // arrive.
  bool IsGone(int peer) const;
  // Returns true once `peer` has introduced itself.
  bool HasCome(int peer) const;

  absl::Status status() const;
  // Ends the group, unless it has ended. Returns the error that ended it.
  absl::Status End(Fault fault, int culprit, const std::string& detail);
  // Calls `ended` once, when End() or an event of another rank ends the group.
  // Runs `ended` on the thread that causes the end. Calls `ended` immediately
  // if the group has already ended.
  void OnEnd(std::function<void()> ended);
  // Returns the fault to report to the other ranks. Returns the fault only
  // once, and only if the group has ended.
  absl::optional<Message> TakeReport();

 private:
  struct Peer {
    std::map<Key, Part> parts;
    int64_t untaken = 0;  // as CostOfPart() counts
    bool has_come = false;
    bool has_left = false;
    uint64_t last_number = 0;  // if it has left
    bool is_gone = false;
    uint64_t noticed = 0;  // the number of the operation in `notice`
    CallWords notice = {};
  };
  // The number of this rank's latest operations that a late message is compared
  // with.
  static constexpr uint64_t kRemembered = 256;

  // Wakes waiting threads, and calls the callbacks if the group has ended.
  void Notify();
  absl::Status EndLocked(Fault fault, int culprit, const std::string& detail)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status BeginLocked(uint64_t number, const CallWords& words)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the group if rank `from` calls another operation `number` than this
  // rank. Compares with the remembered operations only.
  void CompareLocked(int from, uint64_t number, const CallWords& words)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int rank_;
  Signal signal_;
  mutable base::Mutex mu_;
  std::vector<Peer> peers_;  // the vector does not change, its elements do
  uint64_t current_ ABSL_GUARDED_BY(mu_) = 0;  // the number of the operation
  std::array<CallWords, kRemembered> calls_ ABSL_GUARDED_BY(mu_) = {};
  absl::Status status_ ABSL_GUARDED_BY(mu_);
  std::atomic<bool> has_ended_{false};
  std::function<void()> on_end_ ABSL_GUARDED_BY(mu_);
  Message report_ ABSL_GUARDED_BY(mu_);
  bool has_report_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_NET_LEDGER_H_
