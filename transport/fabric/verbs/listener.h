// Accepts peers that know a token.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/connection.h"
#include "transport/fabric/verbs/device.h"
#include "transport/fabric/verbs/site.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Listens at each usable RDMA address. A request with a token that is waited
// for, and the proof of it, is accepted; any other is refused, and costs no
// queue pair. Thread-safe; works on the event loop's thread.
class Listener : public CmHandler,
                 public std::enable_shared_from_this<Listener> {
 public:
  // In the place of `before`, which may be null and does not listen any more:
  // at the same ports where the addresses are the same, as peers know them.
  static absl::StatusOr<std::shared_ptr<Listener>> Create(const Site& site,
                                                          Listener* before);
  ~Listener() override;

  // Where it listens; at least one.
  const std::vector<Address>& addresses() const { return addresses_; }
  // A device has gone or has got another address: it is to be replaced.
  bool is_stale() const { return stale_; }

  // Finishes `attempt` when a peer proves that it knows its token, or the time
  // is over.
  absl::Status Expect(std::shared_ptr<Attempt> attempt);
  // Unless its token stands for another attempt by now.
  void Forget(const Attempt& attempt);

  void OnCmEvent(CmEvent event) override;

 private:
  class Acceptance;

  explicit Listener(const Site& site) : site_(site) {}
  absl::Status Listen();
  void StopListening();
  absl::Status Accept(CmEvent* request);
  // Null: nobody waits for it, or this is no proof of it.
  std::shared_ptr<Attempt> TakeAttempt(const CmEvent& request,
                                       const std::string& token_name);

  const Site site_;
  std::vector<Address> addresses_;
  std::vector<CmId> ids_;  // of each; none once it is stale
  std::atomic<bool> stale_{false};
  std::shared_ptr<int> half_open_ = std::make_shared<int>(0);  // on the loop

  mutable std::mutex mu_;
  // Guarded by mu_. By the name of the token.
  std::map<std::string, std::shared_ptr<Attempt>> expected_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_
