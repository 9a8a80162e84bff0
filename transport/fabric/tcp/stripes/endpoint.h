// An endpoint over several TCP sockets, the stripes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_ENDPOINT_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_ENDPOINT_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace fabric {
namespace stripes {

// Each stripe carries the units of the tcp fabric. The first stripe carries all
// packets, so that they stay in order. Each stripe has all exposed memory under
// the same keys. A read goes to the stripe with the fewest reads in flight, and
// its bytes come back over that stripe. The chunks of one message thus travel
// over all stripes, and a slow stripe gets fewer of them. Reads are
// independent, so the order between stripes does not matter.
//
// Does not push, because a push would wait behind the packets of the first
// stripe. Messages of several frames are sent eagerly instead.
//
// If one stripe breaks, the whole endpoint breaks. The session then continues
// over its lifeline.
class StripesEndpoint : public Endpoint {
 public:
  // Makes the endpoint of 2 to kMostStripes connected sockets, in the order of
  // their indexes. Makes the sockets non-blocking.
  static absl::StatusOr<std::unique_ptr<Endpoint>> Create(
      std::vector<base::UniqueFd> sockets);
  // Ends the connections. In a forked child, only closes the child's
  // descriptors.
  ~StripesEndpoint() override;

  const Capabilities& capabilities() const override { return capabilities_; }
  std::string Describe() const override;
  void Start(EndpointEvents* events) override { events_ = events; }
  bool Send(absl::Span<const uint8_t> packet) override;
  bool SendOwned(std::string* packet) override;
  void BeginBatch() override;
  void EndBatch() override;
  absl::StatusOr<Exposure> Expose(const memory::Payload& payload,
                                  size_t max_parts) override;
  void Withdraw(const RemoteRegion& region) override;
  std::shared_ptr<const void> PrepareToRead(
      const memory::Destination& into) override {
    return HostMemoryAsItIs(into);
  }
  void Read(const RemotePart& part, uint64_t offset, absl::Span<uint8_t> into,
            uint64_t cookie) override;
  bool Divert(uint64_t cookie) override;
  bool IsDrained() override;
  bool HasFailed() const override { return has_failed_; }
  bool Poll() override;
  bool HasInput() const override;
  void SetArmed(bool) override {}
  std::vector<int> wakeup_fds() const override { return {epoll_.get()}; }
  bool TakeDoorbellRequest() override { return false; }
  void RingDoorbell() override {}

 private:
  class Stripe;

  StripesEndpoint(base::UniqueFd epoll, std::vector<base::UniqueFd> sockets);

  absl::Status Watch();
  // Marks the stripes that have new input. Consumes their events.
  void TakeEvents();
  void NoteReadable();
  // Makes the owner poll again soon.
  void PollLater(Stripe* stripe);
  // Makes wakeup_fds() report the stripe's state again.
  void WakeOwner(Stripe* stripe);
  // Makes the owner poll again after a short time. Returns false if there is no
  // descriptor left for the timer.
  bool StartDrainTimer();
  Stripe* first() const { return stripes_.front().get(); }
  Stripe* LeastBusy();
  // Sends as much as the stripe's socket accepts, unless in a batch.
  void Pump(Stripe* stripe);
  // Records a failure. Poll() reports it.
  void Fail(const absl::Status& cause);
  // Ends all reads and reports the failure.
  void Break();

  const uint32_t fork_count_;
  // Contains all sockets, edge-triggered.
  const base::UniqueFd epoll_;
  Capabilities capabilities_;
  EndpointEvents* events_ = nullptr;
  std::vector<std::unique_ptr<Stripe>> stripes_;
  size_t next_ = 0;  // index of the stripe that wins a tie
  int batches_ = 0;  // begun and not ended
  bool polling_ = false;
  bool owes_writable_ = false;
  Stripe* unfinished_ = nullptr;  // after Poll(), the owner must poll again
  base::UniqueFd drain_timer_;    // a timerfd in epoll_, from first use on
  int last_polls_ = 0;            // since the failure
  absl::Status failure_;
  std::atomic<bool> has_failed_{false};  // failure_ is still to be reported
  std::atomic<bool> has_more_{false};    // a stripe has input left
  std::atomic<bool> broken_{false};
};

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_ENDPOINT_H_
