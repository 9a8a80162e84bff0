// One socket of a StripesEndpoint.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_STRIPE_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_STRIPE_H_

#include <linux/sockios.h>
#include <sys/ioctl.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/tcp/endpoint.h"
#include "transport/fabric/tcp/receive.h"
#include "transport/fabric/tcp/socket.h"
#include "transport/fabric/tcp/stripes/endpoint.h"

namespace penstock {
namespace fabric {
namespace stripes {

// A socket and the units on it. Passes events on to the endpoint, or for reads
// to the endpoint's owner. Not thread-safe.
class StripesEndpoint::Stripe : public EndpointEvents {
 public:
  // `count` is the number of all stripes, which share the session's limits.
  Stripe(StripesEndpoint* endpoint, size_t index, size_t count,
         base::UniqueFd socket)
      : endpoint_(endpoint),
        index_(index),
        socket_(std::move(socket)),
        units_(&socket_, tcp::Endpoint::kMaxWaitingReads / count) {
    units_.Start(this);
  }

  int fd() const { return socket_.fd(); }
  size_t index() const { return index_; }
  tcp::Endpoint* units() { return &units_; }
  // Returns the number of reads in flight.
  int reads() const { return reads_; }
  void AddRead() { ++reads_; }
  bool readable() const { return readable_; }
  // Records that the socket has input. `hung_up` means that the peer writes no
  // more.
  void OnInput(bool hung_up) {
    readable_ = !ended_;
    hung_up_ |= hung_up;
  }

  // Receives until the socket is empty, or somewhat more than `most` bytes were
  // received. Returns true if there was any input.
  bool Receive(size_t most) {
    size_t bytes = 0;
    while (readable_ && bytes < most) {
      const absl::StatusOr<size_t> got = socket_.Receive(&units_);
      if (!got.ok()) {
        End(got.status());
        return true;
      }
      // Few bytes mean that the socket is empty now. If the peer hung up, the
      // end of the stream may follow; epoll does not report it again.
      if (*got < tcp::kLeastRoom && !(hung_up_ && *got > 0)) readable_ = false;
      bytes += *got;
    }
    return bytes > 0;
  }
  // Sends as much as the socket accepts, in at most kMostWrites writes. Without
  // this cap, a peer that receives as fast as this side sends would make this
  // side hold the session's lock. The owner's next Poll() sends the rest.
  void Send() {
    for (int i = 0; socket_.writing() && endpoint_->failure_.ok(); ++i) {
      if (i == kMostWrites) return endpoint_->PollLater(this);
      const absl::StatusOr<bool> done = socket_.Pump();
      if (!done.ok()) return endpoint_->Fail(done.status());
      if (!*done) return;
      units_.OnWritten();
    }
  }
  // Returns true if the peer's kernel has received everything.
  bool IsDrained() const {
    int unacknowledged = 0;
    // Sockets other than TCP, which tests use, deliver immediately.
    return units_.idle() &&
           (ioctl(fd(), SIOCOUTQ, &unacknowledged) != 0 || unacknowledged == 0);
  }
  // Ends the connection.
  void Close() { socket_.Close(); }

  void OnPacket(absl::Span<const uint8_t> packet) override {
    if (index_ == 0) return endpoint_->events_->OnPacket(packet);
    endpoint_->Fail(absl::InvalidArgumentError(
        "a packet on another than the first stripe"));
  }
  void OnWritable() override {
    endpoint_->owes_writable_ = true;
    if (!endpoint_->polling_) endpoint_->WakeOwner(this);
  }
  void OnReadDone(uint64_t cookie, const absl::Status& status) override {
    --reads_;
    endpoint_->events_->OnReadDone(cookie, status);
  }
  void OnDoorbell() override {}
  void OnBroken(const absl::Status& cause) override { End(cause); }

 private:
  // Stops receiving, because the socket or its bytes are broken.
  void End(const absl::Status& cause) {
    ended_ = true;
    readable_ = false;
    endpoint_->Fail(cause);
  }

  // Limits the writes of one Send(). A write has up to 512 KiB of replies.
  static constexpr int kMostWrites = 4;

  StripesEndpoint* const endpoint_;
  const size_t index_;
  tcp::Socket socket_;
  tcp::Endpoint units_;
  int reads_ = 0;
  bool readable_ = false;
  bool hung_up_ = false;
  bool ended_ = false;
};

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_STRIPE_H_
