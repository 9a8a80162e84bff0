// Messages between two ranks of a host.

#ifndef PENSTOCK_COLLECTIVES_HOST_MAIL_H_
#define PENSTOCK_COLLECTIVES_HOST_MAIL_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "collectives/host/meeting.h"
#include "collectives/host/watch.h"
#include "collectives/letter.h"
#include "transport/base/mutex.h"
#include "transport/memory/bytes.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {

// The letters of one rank. The sender's segment has a ring for each other rank.
// A receiver that finds a letter with another tag stores the letter on the heap
// until a call requests its tag. A sender whose ring is full waits until the
// receiver receives any letter from this sender.
//
//  Thread-safe.
class Mail {
 public:
  // `members` and `watch` must outlive this object. `max_kept_bytes` limits the
  // unrequested letters from one rank, as HostGroupOptions says.
  Mail(Members* members, Watch* watch, uint64_t max_kept_bytes,
       progress::PollingMode polling);

  absl::Status Send(const Letter& letter, const void* data);
  absl::Status Receive(const Letter& letter, void* data);

 private:
  struct Kept {
    Letter letter;
    memory::Block bytes;
  };
  struct Outgoing {
    base::Mutex mu;  // held while a letter is written
  };
  struct Incoming {
    base::Mutex mu;
    std::condition_variable_any changed;
    // True while a thread reads the ring. At most one thread does.
    bool has_reader ABSL_GUARDED_BY(mu) = false;
    std::list<Kept> kept ABSL_GUARDED_BY(mu);
    uint64_t kept_bytes ABSL_GUARDED_BY(mu) = 0;  // as CostOf() counts
  };

  absl::Status Write(int to, const void* data, size_t bytes);
  absl::Status Read(int from, void* data, size_t bytes);
  // Waits until `ready` is true, and watches the peer.
  absl::Status Await(int peer, const std::atomic<uint32_t>& word,
                     const std::function<bool()>& ready);
  // Takes a stored letter and returns it. If there is none, makes this thread
  // the reader of the ring and returns null.
  std::unique_ptr<Kept> TakeOrBecomeReader(const Letter& letter);
  // Reads letters until the wanted letter arrives.
  absl::Status ReadUntil(const Letter& letter, void* data);
  absl::Status Keep(const Letter& letter);
  absl::Status Mismatch(const Letter& sent, const Letter& wanted);

  Members* const members_;
  Watch* const watch_;
  const uint64_t max_kept_bytes_;
  progress::SpinPolicy policy_;
  std::vector<Outgoing> outgoing_;  // by rank
  std::vector<Incoming> incoming_;  // by rank
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_COLLECTIVES_HOST_MAIL_H_
