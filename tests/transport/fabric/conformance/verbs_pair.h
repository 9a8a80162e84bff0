// Two connected ends of the verbs fabric in one process. Each end has its own
// fabric, over any devices.

#ifndef PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_VERBS_PAIR_H_
#define PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_VERBS_PAIR_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace fabric {
namespace verbs {

// Waits for the result of a Listen() or a Connect().
class Outcome {
 public:
  ConnectCallback callback() const {
    std::shared_ptr<State> state = state_;
    return [state](absl::StatusOr<std::unique_ptr<Endpoint>> result) {
      std::lock_guard<std::mutex> lock(state->mu);
      state->result = std::move(result);
      state->done = true;
      state->changed.notify_all();
    };
  }
  // Waits for the result, up to a minute.
  absl::StatusOr<std::unique_ptr<Endpoint>> Take() {
    std::unique_lock<std::mutex> lock(state_->mu);
    if (!state_->changed.wait_for(lock,
                                  absl::ToChronoSeconds(absl::Seconds(60)),
                                  [this] { return state_->done; })) {
      return absl::DeadlineExceededError("the callback was never called");
    }
    return std::move(state_->result);
  }

 private:
  struct State {
    std::mutex mu;
    std::condition_variable changed;
    bool done = false;
    absl::StatusOr<std::unique_ptr<Endpoint>> result;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

using EndpointPair =
    std::pair<std::unique_ptr<Endpoint>, std::unique_ptr<Endpoint>>;

// Returns the two ends. The listening end comes first.
inline absl::StatusOr<EndpointPair> ConnectPair(Fabric* listening,
                                                Fabric* connecting) {
  const std::string token = "a token of sixteen bytes or more";
  absl::StatusOr<std::string> offer = listening->Offer();
  if (!offer.ok()) return offer.status();
  Outcome accepted, connected;
  auto listen = listening->Listen(token, accepted.callback());
  auto connect = connecting->Connect(*offer, token, connected.callback());
  absl::StatusOr<std::unique_ptr<Endpoint>> client = connected.Take();
  if (!client.ok()) return client.status();
  absl::StatusOr<std::unique_ptr<Endpoint>> server = accepted.Take();
  if (!server.ok()) return server.status();
  return EndpointPair(*std::move(server), *std::move(client));
}

}  // namespace verbs
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TESTS_TRANSPORT_FABRIC_CONFORMANCE_VERBS_PAIR_H_
