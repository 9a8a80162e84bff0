// A fabric for tests: two endpoints in one process, driven by hand. No socket,
// no thread, no clock but the test's; a test decides what happens next and what
// fails.

#ifndef PENSTOCK_TRANSPORT_FABRIC_FAKE_LINK_H_
#define PENSTOCK_TRANSPORT_FABRIC_FAKE_LINK_H_

#include <algorithm>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/fake/medium.h"

namespace penstock {
namespace fabric {
namespace fake {

// Connects side A and side B. Nothing moves by itself: a message, a doorbell,
// the completion of a read, returned credit and the end of the link each wait
// as an event for the endpoint that they concern, in order, until a Step() here
// or that endpoint's Poll() delivers them. Reads are one-sided: the peer has
// no part in them; the bytes are copied when the completion is delivered.
//
// A destroyed endpoint: the peer gets what was sent before, its reads end with
// an error, then comes its OnBroken(). The endpoints may outlive the link.
// Used by one thread at a time, and no Step() from within an event.
class Link {
 public:
  explicit Link(const LinkOptions& options = LinkOptions());

  // The endpoint of `side`: once for each.
  std::unique_ptr<fabric::Endpoint> Take(Side side);

  // Delivers the oldest event of all, or the oldest for `to`. False if none
  // waits for an endpoint that was started.
  bool Step();
  bool Step(Side to);
  // Up to `n` steps. Returns how many there were.
  int Deliver(int n);
  // Until nothing waits, or the ends seem to answer one another for ever.
  int StepAll();
  // Events that wait for `to`.
  size_t waiting(Side to) const { return medium_->waiting(to); }

  // How long messages and the answers to reads take from there, which share
  // the line. The question of a read takes the other direction's latency.
  void SetSpeed(Side from, const Speed& speed) {
    medium_->SetSpeed(from, speed);
  }
  // When the next event can be delivered; UINT64_MAX: none waits.
  uint64_t NextDue() const {
    return std::min(medium_->DueFor(Side::kA), medium_->DueFor(Side::kB));
  }

  // Where the oldest event for `reader` is a read's completion, `order` says
  // which read's it is to be. Null: in order.
  void SetReadOrder(Side reader, ReadOrder order);

  // The nth Send() of `from` from now on is taken, but lost, and the link with
  // it, as after a failed completion. 1 is the next one.
  void FailNthSend(Side from, int n) { medium_->FailNthSend(from, n); }
  // The nth Read() from now on ends with an error; the link stays.
  void FailNthRead(Side reader, int n) { medium_->FailNthRead(reader, n); }
  // The nth Expose() from now on finds no room.
  void FailNthExpose(Side owner, int n) { medium_->FailNthExpose(owner, n); }

  // The link dies. Messages under way are lost; at each end the reads under
  // way end with an error, then comes OnBroken(): all as events.
  void Drop(const absl::Status& cause =
                absl::UnavailableError("the fake link was dropped"));
  // Only `side` learns of it so far. What the other end sends is lost and what
  // it reads ends with an error, until it learns by the destruction of `side`'s
  // endpoint or by Drop().
  void DropOneSide(Side side,
                   const absl::Status& cause =
                       absl::UnavailableError("the fake link was dropped"));

  const Counters& counters(Side side) const { return medium_->counters(side); }
  // Exposures of `owner` that it has not withdrawn.
  size_t exposed(Side owner) const { return medium_->exposed(owner); }
  // What `reader` has loaded and not let go.
  int loans(Side reader) const { return medium_->loans(reader); }

 private:
  const std::shared_ptr<Medium> medium_;
};

}  // namespace fake
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FAKE_LINK_H_
