// Accepts peers that know a token.

#ifndef PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_
#define PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/fabric/verbs/attempt.h"
#include "transport/fabric/verbs/cm_channel.h"
#include "transport/fabric/verbs/connection.h"
#include "transport/fabric/verbs/device.h"
#include "transport/fabric/verbs/options.h"
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
  static absl::StatusOr<std::shared_ptr<Listener>> Create(
      Api* api, std::shared_ptr<CmChannel> channel, progress::EventLoop* loop,
      const Options& options);
  ~Listener() override;

  // Where it listens; at least one.
  std::vector<Address> addresses() const;

  // Finishes `attempt` when a peer proves that it knows its token, or the time
  // is over.
  absl::Status Expect(std::shared_ptr<Attempt> attempt);
  // Unless its token stands for another attempt by now.
  void Forget(const Attempt& attempt);

  void OnCmEvent(CmEvent event) override;

 private:
  class Acceptance;

  Listener(Api* api, std::shared_ptr<CmChannel> channel,
           progress::EventLoop* loop, const Options& options);
  absl::Status Listen();
  absl::Status Accept(CmEvent* request);
  // Null: nobody waits for it, or this is no proof of it.
  std::shared_ptr<Attempt> TakeAttempt(const CmEvent& request,
                                       const std::string& token_name);

  Api* const api_;
  const std::shared_ptr<CmChannel> channel_;
  progress::EventLoop* const loop_;
  const Options options_;
  std::vector<BoundId> ids_;
  std::shared_ptr<int> half_open_ = std::make_shared<int>(0);  // on the loop

  mutable std::mutex mu_;
  // Guarded by mu_. By the name of the token.
  std::map<std::string, std::shared_ptr<Attempt>> expected_;
};

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_VERBS_LISTENER_H_
