// One socket of a StripesEndpoint.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_STRIPE_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_STRIPE_H_

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
  Stripe(StripesEndpoint* endpoint, bool is_first, base::UniqueFd socket)
      : endpoint_(endpoint),
        is_first_(is_first),
        socket_(std::move(socket)),
        units_(&socket_) {
    units_.Start(this);
  }

  int fd() const { return socket_.fd(); }
  tcp::Endpoint* units() { return &units_; }
  // Returns the number of reads in flight.
  int reads() const { return reads_; }
  void AddRead() { ++reads_; }
  bool readable() const { return readable_; }
  // Notes that the socket has input. `hung_up` means that the peer writes no
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
      // Few bytes mean that the socket was empty. After them may come the end
      // of the stream, which is not reported again.
      if (*got < tcp::kLeastRoom && !(hung_up_ && *got > 0)) readable_ = false;
      bytes += *got;
    }
    return bytes > 0;
  }
  // Sends as much as the socket accepts.
  void Send() {
    while (socket_.writing() && endpoint_->failure_.ok()) {
      const absl::StatusOr<bool> done = socket_.Pump();
      if (!done.ok()) return endpoint_->Fail(done.status());
      if (!*done) return;
      units_.OnWritten();
    }
  }
  // Ends the connection.
  void Close() { socket_.Close(); }

  void OnPacket(absl::Span<const uint8_t> packet) override {
    if (is_first_) return endpoint_->events_->OnPacket(packet);
    endpoint_->Fail(absl::InvalidArgumentError(
        "a packet on another than the first stripe"));
  }
  void OnWritable() override {
    endpoint_->owes_writable_ = true;
    if (!endpoint_->polling_) endpoint_->WakeOwner();
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

  StripesEndpoint* const endpoint_;
  const bool is_first_;
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
