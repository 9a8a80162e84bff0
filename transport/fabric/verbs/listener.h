// Accepts peers that prove that they know a token.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_

#include <atomic>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/awaited_tokens.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/cm_connection.h"
#include "transport/fabric/verbs/device.h"
#include "transport/fabric/verbs/site.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Listens at each usable RDMA address. Accepts a request that names an awaited
// token and proves that the peer knows the token. Refuses other requests
// without making a queue pair. Works on the event loop's thread. Thread-safe.
class Listener : public CmHandler,
                 public std::enable_shared_from_this<Listener> {
 public:
  // Creates a listener that replaces `before`, which may be null. `before`
  // stops listening. If the addresses are the same, the new listener uses the
  // same ports, because peers know them.
  static absl::StatusOr<std::shared_ptr<Listener>> Create(const Site& site,
                                                          Listener* before);
  ~Listener() override;

  // Returns the listening addresses, at least one.
  const std::vector<Address>& addresses() const { return addresses_; }
  // Returns true once a device is gone or has another address. The listener
  // should then be replaced.
  bool is_stale() const { return stale_; }

  // Finishes `attempt` when a peer proves that it knows the token, or when the
  // time is over. Destroying the handle cancels the attempt.
  std::unique_ptr<PendingConnect> Expect(std::shared_ptr<Attempt> attempt);

  void OnCmEvent(CmEvent event) override;

 private:
  class Acceptance;

  explicit Listener(const Site& site);
  absl::Status Listen();
  void StopListening();
  // Accepts `request` and takes its identifier. Returns the reason if the
  // request is refused.
  absl::Status Accept(CmEvent* request);

  const Site site_;
  const std::shared_ptr<AwaitedTokens> awaited_;  // by NameOfToken()
  std::vector<Address> addresses_;
  std::vector<CmId> ids_;  // of each address; none once stale
  std::atomic<bool> stale_{false};
  std::shared_ptr<int> half_open_ = std::make_shared<int>(0);  // on the loop
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_
