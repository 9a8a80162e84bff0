// Synchronizes the ranks of a group: each rank posts a call, and waits until
// all ranks have posted.

#ifndef PENSTOCK_COLLECTIVES_HOST_EXCHANGE_H_
#define PENSTOCK_COLLECTIVES_HOST_EXCHANGE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/host/control.h"
#include "collectives/host/meeting.h"
#include "collectives/host/watch.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {

// Waits until all ranks have posted their call. If a rank does not, determines
// why.
//
// Post k uses slot k % 2 of each rank. A rank posts k + 1 only after all ranks
// have posted k. Before a rank writes its slot for post k + 2, all ranks have
// therefore posted k + 1, and have read the slots of post k.
//
// The first error ends the exchange: all later calls return that error. Only
// one thread at a time may use the object, except for Abort().
class Exchange {
 public:
  Exchange(Members members, progress::PollingMode polling,
           absl::Duration timeout, absl::Duration silence = Watch::kSilence);

  int rank() const { return members_.rank; }
  int ranks() const { return static_cast<int>(members_.peers.size()); }
  size_t slot_bytes() const { return members_.own->sizes().slot_bytes; }

  // Returns this rank's slot of the next post.
  uint8_t* NextSlot() { return members_.own->slot(posts_ + 1); }
  // Returns a rank's slot of the last post. Valid until the next post. A peer
  // may change the bytes at any time.
  const uint8_t* SlotOf(int rank) const;

  // Returns this rank's pool, whose memory the peers can read.
  uint8_t* pool() { return members_.own->pool(); }
  size_t pool_bytes() const { return members_.own->sizes().pool_bytes; }
  // Returns an object that keeps this rank's pool mapped.
  std::shared_ptr<const void> pool_memory() const {
    return members_.own->memory();
  }
  // Returns the place of the `bytes` bytes at `data`: their offset in this
  // rank's pool plus 1, or 0 if any of them is outside the pool.
  uint64_t PlaceOf(const void* data, size_t bytes) const;
  // Returns the address of the `bytes` bytes that a rank named in its last
  // post, within that rank's pool. Returns null if the rank named no bytes, or
  // bytes outside of its pool.
  const uint8_t* OperandOf(int rank, size_t bytes) const;

  // Publishes the next slot with `call`, and waits for the same call of all
  // ranks. `place` may differ between ranks. Returns INVALID_ARGUMENT, with
  // both calls, if a rank calls something else; UNAVAILABLE if a rank has died,
  // stopped or left; DEADLINE_EXCEEDED after the timeout; CANCELLED after
  // Abort(). Each error names the rank.
  absl::Status Meet(const CallWords& call, uint64_t place = 0);

  // Returns the error that ended the group at this rank or at a peer, or OK.
  // Call this after the last read of the peers' operands, and before the Meet()
  // that ends the reads: the caller of a rank that got an error may have
  // changed its operand meanwhile.
  absl::Status CheckReads();
  // Returns the error that the next Meet() would return immediately. Call this
  // before each write to NextSlot(): after an error, peers may still read that
  // slot.
  absl::Status Ready();
  // Returns an error if this process is the child of a fork. Any thread may
  // call this. Takes no lock.
  absl::Status CheckOwner() const;

  // Returns the members. The messages between two ranks use them concurrently
  // with the exchange.
  Members* members() { return &members_; }
  Watch* watch() { return &watch_; }

  // Ends the current call and all later calls, on all ranks. Thread-safe. Does
  // nothing in a forked child.
  void Abort();

 private:
  void Publish(const CallWords& call, uint64_t place);
  bool Came(int rank, uint32_t number) const;
  bool AllCame(Watch::Wait* wait) const;
  bool Spin(Watch::Wait* wait);
  absl::Status Sleep(Watch::Wait* wait);
  void SleepOnce(const Watch::Wait& wait);
  absl::Status Compare(const CallWords& call);

  Members members_;
  Watch watch_;
  const uint32_t fork_count_;
  progress::SpinPolicy policy_;
  progress::CoreLosses losses_;
  uint32_t posts_ = 0;
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_EXCHANGE_H_
