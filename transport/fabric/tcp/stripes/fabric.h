// The fabric of several TCP sockets for one session.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_FABRIC_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_FABRIC_H_

#include <memory>
#include <string>

#include "transport/fabric/fabric.h"

namespace penstock {
namespace fabric {
namespace stripes {

// Opens more connections of the session, to the same port as the session's
// first connection. Each presents the session's one-time token. A side's offer
// is its maximum number of sockets, as text. The session gets the smaller of
// the two numbers.
class StripesFabric : public Fabric {
 public:
  // `sockets` limits the sockets, 2 to kMostStripes. `peer` is the address of
  // the first connection's peer, in gRPC's form. Empty if further sockets might
  // not reach the same peer.
  StripesFabric(int sockets, std::string peer);

  absl::string_view name() const override { return "tcp"; }
  absl::StatusOr<std::string> Offer() override;
  std::unique_ptr<PendingConnect> Listen(absl::string_view token,
                                         ConnectCallback done) override;
  std::unique_ptr<PendingConnect> Connect(absl::string_view offer,
                                          absl::string_view token,
                                          ConnectCallback done) override;

 private:
  const int sockets_;
  const std::string peer_;
};

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_FABRIC_H_
