// A fabric for tests: two endpoints in one process, driven by hand. It has no
// socket, no thread, and no clock but the test's. The test decides what happens
// next, and what fails.

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

// Connects side A and side B. Nothing moves by itself. A packet, a doorbell,
// the completion of a read, returned credit and the end of the link each wait
// as an event for the endpoint that they concern. Step() here, or that
// endpoint's Poll(), delivers them in order. The bytes of a read are copied
// when its completion is delivered; the peer has no part in it.
//
// When an endpoint is destroyed, its peer gets what was sent before, then the
// ends of its reads with an error, then OnBroken(). The endpoints may outlive
// the link. Used by one thread at a time. Do not call Step() from within an
// event.
class Link {
 public:
  explicit Link(const LinkOptions& options = LinkOptions());

  // Returns the endpoint of `side`. Call it once for each.
  std::unique_ptr<fabric::Endpoint> Take(Side side);

  // Delivers the oldest event of all, or the oldest for `to`. Returns false if
  // none waits for an endpoint that was started.
  bool Step();
  bool Step(Side to);
  // Makes up to `n` steps. Returns how many there were.
  int Deliver(int n);
  // Steps until nothing waits, or until the ends seem to answer one another for
  // ever. Returns how many steps there were.
  int StepAll();
  // Returns how many events wait for `to`.
  size_t waiting(Side to) const { return medium_->waiting(to); }

  // Sets how long packets and the answers to reads take from there; they share
  // the line. The request of a read takes the other direction's latency.
  void SetSpeed(Side from, const Speed& speed) {
    medium_->SetSpeed(from, speed);
  }
  // Returns when the next event can be delivered, or UINT64_MAX if none waits.
  uint64_t NextDue() const {
    return std::min(medium_->DueFor(Side::kA), medium_->DueFor(Side::kB));
  }

  // Lets `order` choose which read of `reader` completes, whenever the oldest
  // event for it is a completion. Null restores the order of age.
  void SetReadOrder(Side reader, ReadOrder order);

  // Takes the nth Send() of `from` from now on, loses it, and breaks the link,
  // as after a failed completion. 1 is the next one.
  void FailNthSend(Side from, int n) { medium_->FailNthSend(from, n); }
  // Ends the nth Read() from now on with an error. The link stays.
  void FailNthRead(Side reader, int n) { medium_->FailNthRead(reader, n); }
  // Fails the nth Expose() from now on with RESOURCE_EXHAUSTED.
  void FailNthExpose(Side owner, int n) { medium_->FailNthExpose(owner, n); }

  // Breaks the link and loses the packets under way. Each end gets, as events,
  // the ends of its reads with an error and then OnBroken().
  void Drop(const absl::Status& cause =
                absl::UnavailableError("the fake link was dropped"));
  // Breaks the link for `side` only. The other end's packets are lost and its
  // reads end with an error, until it learns by the destruction of `side`'s
  // endpoint or by Drop().
  void DropOneSide(Side side,
                   const absl::Status& cause =
                       absl::UnavailableError("the fake link was dropped"));

  const Counters& counters(Side side) const { return medium_->counters(side); }
  // Returns how many exposures `owner` has not withdrawn.
  size_t exposed(Side owner) const { return medium_->exposed(owner); }
  // Returns for how many destinations `reader` holds what PrepareToRead() gave.
  int prepared(Side reader) const { return medium_->prepared(reader); }
  // Returns how many loans `reader` has loaded and not let go.
  int loans(Side reader) const { return medium_->loans(reader); }

 private:
  const std::shared_ptr<Medium> medium_;
};

}  // namespace fake
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FAKE_LINK_H_
