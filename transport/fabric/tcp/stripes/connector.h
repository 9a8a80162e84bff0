// The client's side of the set-up of stripes.

#ifndef PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_CONNECTOR_H_
#define PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_CONNECTOR_H_

#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/timed_setup.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace stripes {

// The address of a listener of TCP connections.
struct Address {
  sockaddr_storage storage = {};
  socklen_t length = 0;

  // Parses an address as gRPC writes it: "ipv4:10.0.0.1:5000",
  // "ipv6:[fe80::1%2]:5000", also with "%5B" and "%5D" for the brackets.
  // Returns INVALID_ARGUMENT for other kinds of addresses.
  static absl::StatusOr<Address> Parse(absl::string_view text);
};

// Opens all stripes to one address, and greets on each.
class Connector : public TimedSetup {
 public:
  Connector(progress::EventLoop* loop, std::shared_ptr<Attempt> attempt,
            const Address& address, int count, absl::Duration limit);

 private:
  struct Opening {
    base::UniqueFd socket;
    progress::EventLoop::Id watch = 0;  // 0 once the greeting was sent
  };

  void BeginOnLoop() override;
  void ReleaseOnLoop() override;
  absl::Status Open(size_t index);
  void OnWritable(size_t index);
  absl::Status Greet(size_t index);

  const Address address_;
  std::vector<Opening> openings_;  // by index
  size_t greeted_ = 0;
};

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_TCP_STRIPES_CONNECTOR_H_
