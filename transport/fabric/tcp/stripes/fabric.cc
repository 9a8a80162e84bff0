#include "transport/fabric/tcp/stripes/fabric.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "transport/base/descriptors.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/tcp/stripes/address.h"
#include "transport/fabric/tcp/stripes/connector.h"
#include "transport/fabric/tcp/stripes/greeting.h"
#include "transport/fabric/tcp/stripes/listener.h"
#include "transport/fabric/timed_setup.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

// Limits the time for connecting: a few round trips, even if some packets are
// lost.
constexpr absl::Duration kConnectLimit = absl::Seconds(3);
// Limits the time for waiting. Before, the client may try other fabrics for up
// to seven seconds.
constexpr absl::Duration kListenLimit = absl::Seconds(12);

std::shared_ptr<Attempt> NewAttempt(absl::string_view token,
                                    ConnectCallback done) {
  return std::make_shared<Attempt>(std::string(token), std::move(done));
}

}  // namespace

StripesFabric::StripesFabric(int sockets, std::string peer)
    : sockets_(sockets), peer_(std::move(peer)) {}

absl::StatusOr<std::string> StripesFabric::Offer() {
  if (peer_.empty() || !Address::Parse(peer_).ok()) {
    return absl::FailedPreconditionError(
        "further sockets need a TCP connection that gRPC opened itself, "
        "without a proxy and without a socket mutator");
  }
  return absl::StrCat(sockets_);
}

std::unique_ptr<PendingConnect> StripesFabric::Listen(absl::string_view token,
                                                      ConnectCallback done) {
  std::shared_ptr<Attempt> attempt = NewAttempt(token, std::move(done));
  const absl::Status room = base::Descriptors::Now().CheckForPath();
  if (!room.ok()) return FailLater(std::move(attempt), room);
  const absl::StatusOr<Address> peer = Address::Parse(peer_);
  if (!peer.ok()) return FailLater(std::move(attempt), peer.status());
  return AwaitStripes(std::move(attempt), *peer, sockets_, kListenLimit);
}

std::unique_ptr<PendingConnect> StripesFabric::Connect(absl::string_view offer,
                                                       absl::string_view token,
                                                       ConnectCallback done) {
  std::shared_ptr<Attempt> attempt = NewAttempt(token, std::move(done));
  const absl::Status room = base::Descriptors::Now().CheckForPath();
  if (!room.ok()) return FailLater(std::move(attempt), room);
  int offered = 0;
  if (!absl::SimpleAtoi(offer, &offered) || offered < 2) {
    return FailLater(std::move(attempt), absl::InvalidArgumentError(
                                             "a malformed offer of sockets"));
  }
  const absl::StatusOr<Address> address = Address::Parse(peer_);
  if (!address.ok()) return FailLater(std::move(attempt), address.status());
  const absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return FailLater(std::move(attempt), loop.status());
  return TimedSetup::Launch(
      std::make_shared<Connector>(*loop, std::move(attempt), *address,
                                  std::min(offered, sockets_), kConnectLimit));
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
