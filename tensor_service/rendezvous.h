// Matches sends with receives of the same key, whichever comes first.

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

// Transfers tensors from senders to receivers of the same key, within one
// process. Stores tensors that no receiver has fetched, up to a budget and for
// a limited time. Tensors for peers count against the budget until the
// transport has released them; tensors for the program's own receivers do not
// count. Shares the tensors' memory, like TensorStore. Copies a tensor only if
// it must be stored and is less than half of its message.
//
// Receivers of one key are served in the order of arrival. A receiver gets the
// tensor at most once. If a receiver dies while it waits, the tensor is kept
// for other receivers. If the receiver dies later, the tensor is lost.
//
// Thread-safe. No call blocks, except the receive with a timeout. A callback
// runs exactly once, without locks held, within the call that ends its wait, on
// that call's thread.
class Rendezvous {
 public:
  // The bytes that a kept tensor counts against the budget in addition to its
  // names and memory. An upper bound of the real overhead.
  static constexpr size_t kEntryBytes = 512;
  // Caps the receivers of one tensor, above the size of any cluster.
  static constexpr uint32_t kMaxReceivers = 1 << 16;

  struct Options {
    // Limits the memory of tensors that nobody has fetched, and of tensors in
    // transit to peers. Each tensor counts its names, kEntryBytes, and the
    // memory that it prevents from being freed.
    size_t budget_bytes = size_t{4} << 30;
    // The fraction of a resource that one client may have, of the part that
    // other clients leave; see ClientShares. Applies to the bytes that a client
    // has sent, to the bytes in transit to the client, and to the client's
    // places in max_waiters. Above 0 and at most 1; with 1, one client may have
    // everything.
    double client_share = 0.5;
    // Limits the waiting receives; each takes at most about 2 KiB.
    size_t max_waiters = 10000;
    // The time after which an unfetched tensor is dropped. Must be longer than
    // any step. Zero disables the limit.
    absl::Duration unfetched_limit = absl::Minutes(10);
    // The number of ended steps that are remembered; each takes at most about 1
    // KiB. More than the number of steps that can have calls in progress.
    size_t max_ended_steps = 4096;
    // Returns the time, which must not go back. Empty selects
    // std::chrono::steady_clock.
    std::function<absl::Time()> clock;
  };

  struct SendOptions {
    // Marks a tensor that was not computed, because the program took another
    // branch. Receivers get the mark, and should ignore the elements.
    bool is_dead = false;
    // The number of receives that get the tensor; all share its memory.
    uint32_t receivers = 1;
  };

  struct Received {
    Tensor tensor;
    bool is_dead = false;
    // Counts the tensor of a peer's receive against the budget: keep `hold` as
    // long as the tensor's memory. Null for the program's own receives.
    std::shared_ptr<const void> hold = nullptr;
  };

  using Callback = std::function<void(absl::StatusOr<Received>)>;

  struct Usage {
    size_t bytes;    // bytes that count against the budget
    size_t tensors;  // tensors that wait for receivers
    size_t waiters;
  };

  Rendezvous();
  explicit Rendezvous(Options options);
  // Ends remaining waits with CANCELLED. No other call may be in progress.
  ~Rendezvous();
  Rendezvous(const Rendezvous&) = delete;
  Rendezvous& operator=(const Rendezvous&) = delete;

  // Passes the tensor to waiting receives, and stores it for later ones. After
  // the last receive, the key is free again. `client` is the peer that sends;
  // an empty name is the program itself.
  //
  // On an error, no receive has got the tensor. Returns
  //
  // - INVALID_ARGUMENT, like RendezvousKey::Check(), or if `receivers` is not
  //   in 1 to kMaxReceivers;
  // - ALREADY_EXISTS while an earlier tensor of the key waits for a receiver;
  // - RESOURCE_EXHAUSTED, with the numbers, above the budget, the share of
  //   `client`, or the share of a client that waits for the tensor;
  // - the reason of the step's end if the step has ended.
  absl::Status Send(const RendezvousKey& key, const Tensor& tensor,
                    const SendOptions& options, const std::string& client = "");
  absl::Status Send(const RendezvousKey& key, const Tensor& tensor) {
    return Send(key, tensor, SendOptions());
  }

  // Calls `callback` with the tensor of `key`, possibly before Receive()
  // returns. Returns a number for Cancel(). `client` is the peer that receives
  // and that gets Received::hold; an empty name is the program itself.
  //
  // The callback gets an error
  //
  // - INVALID_ARGUMENT, like RendezvousKey::Check();
  // - RESOURCE_EXHAUSTED above max_waiters or the share of `client`;
  // - the reason of the step's end;
  // - the reason that was given to Cancel().
  uint64_t Receive(const RendezvousKey& key, Callback callback,
                   const std::string& client = "");

  // Blocks until the tensor arrives, and returns it. Returns the errors above,
  // or DEADLINE_EXCEEDED after `timeout`. If the tensor arrives just as the
  // time expires, it is returned and not lost.
  absl::StatusOr<Received> Receive(const RendezvousKey& key,
                                   absl::Duration timeout);

  // Ends a wait with `reason`. Returns false if the wait has already ended; its
  // callback has run, or is running on another thread.
  bool Cancel(uint64_t wait, const absl::Status& reason);

  // Ends the step with `reason`, which its waiting and later sends and receives
  // return. Drops the step's unfetched tensors. Only the first end of a step
  // counts. Returns INVALID_ARGUMENT if `reason` is OK.
  //
  // Only the last max_ended_steps ended steps are remembered. An older step
  // counts as new: its sends expire, and its receives end by their deadlines.
  absl::Status CancelStep(uint64_t step, const absl::Status& reason);

  // Ends a step that succeeded: like CancelStep(), with FAILED_PRECONDITION for
  // later calls.
  void FinishStep(uint64_t step);

  // Ends all steps permanently with `reason`, for example before the server is
  // shut down. Only the first call counts. Returns INVALID_ARGUMENT if `reason`
  // is OK.
  absl::Status CancelAll(const absl::Status& reason);

  // Drops tensors that are older than unfetched_limit. Send() and Receive()
  // also do so. Call Sweep() from time to time if memory must be freed while
  // neither is called.
  void Sweep();

  Usage usage() const;

 private:
  struct Waiter {
    Callback callback;
    std::string client;        // empty for the program itself
    ClientShares::Hold place;  // place among the waiters
  };
  // The state of one key: either a tensor or waiters. Erased once there is
  // neither.
  struct Slot {
    Received kept;
    uint32_t receivers = 0;               // how many receives will use `kept`
    uint64_t serial = 0;                  // key of `kept` in by_age_
    std::shared_ptr<Budget::Hold> bytes;  // bytes of `kept` in the budget
    ClientShares::Hold of_sender;  // bytes of `kept` in the sender's share
    std::map<uint64_t, Waiter> waiters;  // by number, the oldest first
  };
  using Slots = std::map<RendezvousKey, Slot>;
  struct Age {
    absl::Time expires;
    Slots::iterator slot;
  };
  // The work to do after the lock is released.
  struct Due {
    std::vector<std::pair<Callback, absl::StatusOr<Received>>> calls;
    std::vector<Tensor> dropped;
    void Run();
  };

  absl::Status CheckSend(const RendezvousKey& key,
                         const SendOptions& options) const;
  bool IsAwaited(const RendezvousKey& key, uint32_t receivers) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // The memory and the waiter slots that a send reserves before it passes on a
  // tensor.
  struct Room {
    // The memory; null if nothing needs to be kept or sent to peers.
    std::shared_ptr<Budget::Hold> bytes;
    ClientShares::Hold of_sender;
    // The reservations of receivers; null for the program's own receivers.
    std::vector<std::shared_ptr<const void>> of_receivers;
  };
  absl::Status SendLocked(const RendezvousKey& key, const Received& sent,
                          uint32_t receivers, const std::string& client,
                          Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Reserves room for a tensor that goes to the first `served` waiters of
  // `slot`. If `is_kept`, also reserves room to store the tensor for later
  // receivers.
  absl::StatusOr<Room> TakeRoomLocked(size_t bytes, const std::string& client,
                                      Slots::iterator slot, uint32_t served,
                                      bool is_kept)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Returns Received::hold for a receiver.
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
  // Ends the slots in [from, to).
  void EndLocked(Slots::iterator from, Slots::iterator to,
                 const absl::Status& reason, Due* due)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SweepLocked(Due* due) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const Options options_;
  Budget budget_;
  ClientShares sent_;     // bytes that are kept, by sender
  ClientShares handed_;   // bytes on their way, by receiver
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
