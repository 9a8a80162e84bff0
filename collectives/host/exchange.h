// The rhythm of a group: each rank posts a call, and waits until all have.

#ifndef PENSTOCK_COLLECTIVES_HOST_EXCHANGE_H_
#define PENSTOCK_COLLECTIVES_HOST_EXCHANGE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/fault.h"
#include "collectives/host/control.h"
#include "collectives/host/meeting.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {

// Waits for the posts of all ranks, and notices why one does not come.
//
// Post k uses slot k % 2 of each rank. A rank posts k + 1 only after all ranks
// have posted k. When a rank may write its slot for post k + 2, all ranks have
// therefore posted k + 1, and have read the slots of post k.
//
// The first error ends the exchange: all later calls return it. One thread at a
// time, except for Abort().
class Exchange {
 public:
  // A stopped process is reported this long after the beginning of a wait. Less
  // than the promise of two seconds, and more than a busy machine keeps a
  // thread waiting.
  static constexpr absl::Duration kSilence = absl::Milliseconds(1500);

  Exchange(Members members, progress::PollingMode polling,
           absl::Duration timeout);

  int rank() const { return members_.rank; }
  int ranks() const { return static_cast<int>(members_.peers.size()); }
  size_t slot_bytes() const { return members_.own->sizes().slot_bytes; }

  // Returns this rank's slot of the next post.
  uint8_t* NextSlot() { return members_.own->slot(posts_ + 1); }
  // Returns a rank's slot of the last post. Valid until the next post. A peer
  // may change the bytes at any time.
  const uint8_t* SlotOf(int rank) const;

  // Returns this rank's pool, whose bytes lie where peers can read them.
  uint8_t* pool() { return members_.own->pool(); }
  size_t pool_bytes() const { return members_.own->sizes().pool_bytes; }
  // Returns the place of `bytes` at `data`: 1 more than the offset in this
  // rank's pool, or 0 if the bytes are not all there.
  uint64_t PlaceOf(const void* data, size_t bytes) const;
  // Returns the `bytes` that a rank named as the place of its last post. Null
  // if it named none, or a place outside of its pool.
  const uint8_t* OperandOf(int rank, size_t bytes) const;

  // Publishes the next slot with `call`, and waits for the same call of all
  // ranks. `place` may differ between ranks. Returns INVALID_ARGUMENT, with
  // both calls, if a rank calls something else; UNAVAILABLE if a rank has died,
  // stopped or left; DEADLINE_EXCEEDED after the timeout; CANCELLED after
  // Abort(). Each error names the rank.
  absl::Status Meet(const CallWords& call, uint64_t place = 0);

  // Returns the error that the next Meet() would return at once. Call it before
  // each write to NextSlot(): after an error, peers may still read that slot.
  absl::Status Ready();
  // Returns an error in the child of a fork. Any thread; takes no lock.
  absl::Status CheckOwner() const;

  // Ends the present and all later calls, on all ranks. Any thread. Does
  // nothing in the child of a fork.
  void Abort();

 private:
  // A rank's last heartbeat, and when this rank first saw it.
  struct Pulse {
    uint64_t heartbeat = 0;
    absl::Time since;
  };
  // One wait: the ranks below `late` have come.
  struct Wait {
    uint32_t number = 0;
    absl::Time begun;
    int late = 0;
    std::vector<Pulse> pulses;  // of each rank
    absl::Time last_look = absl::InfinitePast();
  };

  void Publish(const CallWords& call, uint64_t place);
  bool Came(int rank, uint32_t number) const;
  bool AllCame(Wait* wait) const;
  bool Spin(Wait* wait);
  absl::Status Sleep(Wait* wait);
  void SleepOnce(const Wait& wait);
  absl::Status Compare(const CallWords& call);

  // Returns the error of a rank that will not come, or OK.
  absl::Status LookForFaults(Wait* wait);
  absl::Status LookForReports(Wait* wait);
  absl::Status LookForDeaths(Wait* wait);
  absl::Status LookForSilence(Wait* wait);
  // Ends the exchange, and tells the peers.
  absl::Status End(Fault fault, int culprit, const std::string& detail);
  // Tells the peers, unless this rank has reported another fault. Any thread.
  void Report(Fault fault, int culprit);

  const Members members_;
  const absl::Duration timeout_;
  const uint32_t fork_count_;
  progress::SpinPolicy policy_;
  progress::CoreLosses losses_;
  uint32_t posts_ = 0;
  absl::Status status_;
  std::atomic<bool> aborted_{false};
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_EXCHANGE_H_
