// A fabric for tests: two endpoints in one process, without sockets and
// threads. The test decides which event comes next, which calls fail, and what
// time it is.

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

// Connects side A and side B. Nothing happens on its own: each event waits to
// be delivered. Events are a packet, a doorbell, the completion of a read,
// returned credit, and the end of the link. Step() here, or Poll() of the
// event's endpoint, delivers an event. Events are delivered in order. The bytes
// of a read are copied when its completion is delivered, without any action of
// the peer.
//
// When an endpoint is destroyed, its peer gets these events: everything that
// was sent before, an error for each of its reads, and OnBroken(). The
// endpoints may outlive the link. Used by one thread at a time. Do not call
// Step() from within an event.
class Link {
 public:
  explicit Link(const LinkOptions& options = LinkOptions());

  // Returns the endpoint of `side`. Call it once for each.
  std::unique_ptr<fabric::Endpoint> Take(Side side);

  // Delivers the oldest event, or the oldest event for side `to`. Returns false
  // if no event can be delivered.
  bool Step();
  bool Step(Side to);
  // Makes up to `n` steps. Returns the number of steps.
  int Deliver(int n);
  // Steps until no event is left. Stops early if the two ends seem to answer
  // each other forever. Returns the number of steps.
  int StepAll();
  // Returns the number of events that wait for `to`.
  size_t waiting(Side to) const { return medium_->waiting(to); }

  // Sets the speed of packets and answers to reads from side `from`, which
  // share a line. The request of a read takes the latency of the other
  // direction.
  void SetSpeed(Side from, const Speed& speed) {
    medium_->SetSpeed(from, speed);
  }
  // Returns the time of the next event, or UINT64_MAX if none waits.
  uint64_t NextDue() const {
    return std::min(medium_->DueFor(Side::kA), medium_->DueFor(Side::kB));
  }

  // Sets the order in which reads of `reader` complete. Whenever a completion
  // is due, `order` chooses the read. Null restores the order of age, oldest
  // first.
  void SetReadOrder(Side reader, ReadOrder order);

  // Makes the nth Send() of `from`, counted from now, fail like a failed
  // completion: the packet is lost and the link breaks. The next Send() is
  // number 1.
  void FailNthSend(Side from, int n) { medium_->FailNthSend(from, n); }
  // Makes the nth Read() from now on end with an error. The link stays intact.
  void FailNthRead(Side reader, int n) { medium_->FailNthRead(reader, n); }
  // Makes the nth Expose() from now on fail with RESOURCE_EXHAUSTED.
  void FailNthExpose(Side owner, int n) { medium_->FailNthExpose(owner, n); }

  // Breaks the link and loses the packets in flight. Each endpoint gets the
  // completions of its reads with an error, and then OnBroken(), as events.
  void Drop(const absl::Status& cause =
                absl::UnavailableError("the fake link was dropped"));
  // Breaks the link for `side` only. Packets to the other side are lost, and
  // the other side's reads end with an error. The other side learns of the
  // break when the endpoint of `side` is destroyed, or by Drop().
  void DropOneSide(Side side,
                   const absl::Status& cause =
                       absl::UnavailableError("the fake link was dropped"));

  const Counters& counters(Side side) const { return medium_->counters(side); }
  // Returns the number of exposures that `owner` has not withdrawn.
  size_t exposed(Side owner) const { return medium_->exposed(owner); }
  // Returns the number of live results of PrepareToRead() at `reader`.
  int prepared(Side reader) const { return medium_->prepared(reader); }
  // Returns the number of loans that `reader` has loaded and not released.
  int loans(Side reader) const { return medium_->loans(reader); }

 private:
  const std::shared_ptr<Medium> medium_;
};

}  // namespace fake
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_FAKE_LINK_H_
