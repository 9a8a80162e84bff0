// Where a send and a receive of the same key meet, whichever comes first.

#ifndef PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_H_
#define PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "tensor_service/budget.h"
#include "tensor_service/client_shares.h"
#include "tensor_service/ended_steps.h"
#include "tensor_service/rendezvous_key.h"
#include "tensor_service/tensor.h"

namespace penstock::tensor {

// Hands tensors from senders to receivers of the same key, within one process.
// Keeps what nobody has fetched yet, under a budget and for a limited time.
// What has been handed to peers counts against the budget, too, until their
// transport has let it go; what the program's own receivers got is the
// program's. Shares the tensors' memory, as TensorStore does. Copies a tensor
// only if it must be kept and is less than half of its message.
//
// Receivers of one key are served in the order in which they came. A tensor is
// handed over at most once for each of its receivers: a receiver that dies
// afterwards takes it along, one that dies while it waits does not.
//
// Thread-safe. No call waits, but for the receive with a timeout. A callback
// runs exactly once, without locks, within the call that ends its wait, on that
// call's thread.
class Rendezvous {
 public:
  // The most that a kept tensor takes beside its names and its memory. In
  // bytes.
  static constexpr size_t kEntryBytes = 512;
  // More receivers of one tensor than any cluster has.
  static constexpr uint32_t kMaxReceivers = 1 << 16;

  struct Options {
    // Bounds the tensors that nobody has fetched, and those on their way to
    // peers: for each its names, kEntryBytes, and the memory that it keeps from
    // being freed.
    size_t budget_bytes = size_t{4} << 30;
    // The most that one client may have of what the others leave: of the budget
    // by what it has sent, and by what is on its way to it; of max_waiters. See
    // ClientShares. Above 0, and at most 1: a client may have all.
    double client_share = 0.5;
    // Bounds the receives that wait; each takes at most about 2 KiB.
    size_t max_waiters = 10000;
    // How long a tensor is kept for receivers that do not come. Zero is for
    // ever. Longer than any step.
    absl::Duration unfetched_limit = absl::Minutes(10);
    // How many ended steps are remembered, the latest ones; each takes at most
    // about 1 KiB. More than can have calls under way.
    size_t max_ended_steps = 4096;
    // Gives the time, and never goes back. Empty is std::chrono::steady_clock.
    std::function<absl::Time()> clock;
  };

  struct SendOptions {
    // Marks a tensor that was not computed, since the program took another
    // branch. Receivers get the mark, and normally ignore the elements.
    bool is_dead = false;
    // How many receives get the tensor, all the same memory.
    uint32_t receivers = 1;
  };

  struct Received {
    Tensor tensor;
    bool is_dead = false;
    // If it is for a peer, counts the tensor against the budget: keep this as
    // long as the tensor's memory. Otherwise null.
    std::shared_ptr<const void> hold = nullptr;
  };

  using Callback = std::function<void(absl::StatusOr<Received>)>;

  struct Usage {
    size_t bytes;    // what counts against the budget
    size_t tensors;  // that wait for receivers
    size_t waiters;
  };

  Rendezvous();
  explicit Rendezvous(Options options);
  // Ends waits that are left with CANCELLED. No other call may run now.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Hands the tensor to the receives that wait, and keeps it for those to come.
  // After the last one the key is free again.
  //
  // Returns INVALID_ARGUMENT as RendezvousKey::Check() does, and unless there
  // are 1 to kMaxReceivers receivers; ALREADY_EXISTS while an earlier tensor of
  // the key waits for a receiver; RESOURCE_EXHAUSTED, with the numbers, above
  // the budget, or the share of `client`, or of a client that waits for it; and
  // the reason if the step has ended. On an error nothing has been handed over.
  //
  // `client` is the peer that sends; empty is the program itself.
  absl::Status Send(const RendezvousKey& key, const Tensor& tensor,
                    const SendOptions& options, const std::string& client = "");
  absl::Status Send(const RendezvousKey& key, const Tensor& tensor) {
    return Send(key, tensor, SendOptions());
  }

  // Calls back with the tensor of `key`, perhaps before this returns. Returns a
  // number for Cancel().
  //
  // The callback gets INVALID_ARGUMENT as RendezvousKey::Check() returns it;
  // RESOURCE_EXHAUSTED above max_waiters, or the share of `client`; the reason,
  // when the step ends; and the status that Cancel() was given.
  //
  // `client` is the peer that receives, and for which Received::hold is; empty
  // is the program itself.
  uint64_t Receive(const RendezvousKey& key, Callback callback,
                   const std::string& client = "");

  // Blocks until the tensor comes, and returns it, or errors as above, or
  // DEADLINE_EXCEEDED after `timeout`. A tensor that comes as the time runs out
  // is returned, not lost.
  absl::StatusOr<Received> Receive(const RendezvousKey& key,
                                   absl::Duration timeout);

  // Ends a wait with `reason`. Returns false if it has ended already; then its
  // callback has run, or runs now on another thread.
  bool Cancel(uint64_t wait, const absl::Status& reason);

  // Ends the step: its waits, and every send and receive from now on, get the
  // code and message of `reason`; tensors that nobody has fetched are dropped.
  // The first end of a step counts. Returns INVALID_ARGUMENT if `reason` is OK.
  //
  // Only the last max_ended_steps steps are remembered. What comes later for an
  // older one is taken for a new step: a send of it expires, and a receive ends
  // by its deadline.
  absl::Status CancelStep(uint64_t step, const absl::Status& reason);

  // Ends a step that went well: as CancelStep(), with FAILED_PRECONDITION for
  // those who come too late.
  void FinishStep(uint64_t step);

  // Ends all steps for good, with `reason`, as before the server is shut down.
  // The first call counts. Returns INVALID_ARGUMENT if `reason` is OK.
  absl::Status CancelAll(const absl::Status& reason);

  // Drops what is over unfetched_limit. Send() and Receive() do so too. Call it
  // now and then if the memory must be freed while neither comes.
  void Sweep();

  Usage usage() const;

 private:
  struct Waiter {
    Callback callback;
    std::string client;        // empty is the program itself
    ClientShares::Hold place;  // among the waiters
  };
  // Has either a tensor or waiters. Erased when it has neither.
  struct Slot {
    Received kept;
    uint32_t receivers = 0;               // that `kept` waits for
    uint64_t serial = 0;                  // of `kept` in by_age_
    std::shared_ptr<Budget::Hold> bytes;  // of `kept`
    ClientShares::Hold of_sender;         // the same
    std::map<uint64_t, Waiter> waiters;   // by number: the oldest first
  };
  using Slots = std::map<RendezvousKey, Slot>;
  struct Age {
    absl::Time expires;
    Slots::iterator slot;
  };
  // What to do once the lock is free.
  struct Due {
    std::vector<std::pair<Callback, absl::StatusOr<Received>>> calls;
    std::vector<Tensor> dropped;
    void Run();
  };

  absl::Status CheckSend(const RendezvousKey& key,
                         const SendOptions& options) const;
  bool IsAwaited(const RendezvousKey& key, uint32_t receivers) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // The memory and the places that a send takes before it hands anything over.
  struct Room {
    std::shared_ptr<Budget::Hold> bytes;  // null if it needs none
    ClientShares::Hold of_sender;
    std::vector<std::shared_ptr<const void>> of_receivers;  // null for our own
  };
  absl::Status SendLocked(const RendezvousKey& key, const Received& sent,
                          uint32_t receivers, const std::string& client,
                          Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Takes the room of a tensor that goes to the first `served` waiters of
  // `slot`, and is kept for others, if `is_kept`.
  absl::StatusOr<Room> TakeRoomLocked(size_t bytes, const std::string& client,
                                      Slots::iterator slot, uint32_t served,
                                      bool is_kept)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns what Received::hold is for a receiver.
  absl::StatusOr<std::shared_ptr<const void>> HoldFor(
      const std::string& client, const std::shared_ptr<Budget::Hold>& bytes);
  void KeepLocked(const RendezvousKey& key, const Received& sent,
                  uint32_t receivers, Room room)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status ReceiveLocked(const RendezvousKey& key, uint64_t wait,
                             Callback* callback, const std::string& client,
                             Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  absl::Status AwaitLocked(const RendezvousKey& key, uint64_t wait,
                           Callback* callback, const std::string& client)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Drops the tensor of the slot, and returns the next slot.
  Slots::iterator DropLocked(Slots::iterator slot, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the slots from `from` until `to`.
  void EndLocked(Slots::iterator from, Slots::iterator to,
                 const absl::Status& reason, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SweepLocked(Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  Budget budget_;
  ClientShares sent_;     // bytes that are kept, by their senders
  ClientShares handed_;   // bytes on their way, by their receivers
  ClientShares waiting_;  // waiters
  mutable absl::Mutex mu_;
  Slots slots_ ABSL_GUARDED_BY(mu_);
  std::unordered_map<uint64_t, Slots::iterator> waiters_ ABSL_GUARDED_BY(mu_);
  std::map<uint64_t, Age> by_age_ ABSL_GUARDED_BY(mu_);  // the oldest first
  uint64_t next_number_ ABSL_GUARDED_BY(mu_) = 1;  // of waiters and serials
  EndedSteps ended_ ABSL_GUARDED_BY(mu_);
};

}  // namespace penstock::tensor

#endif  // PENSTOCK_TENSOR_SERVICE_RENDEZVOUS_H_
