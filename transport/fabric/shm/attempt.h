// A connection that is being made.

#ifndef PENSTOCK_TRANSPORT_FABRIC_SHM_ATTEMPT_H_
#define PENSTOCK_TRANSPORT_FABRIC_SHM_ATTEMPT_H_

#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/statusor.h"
#include "transport/base/unique_fd.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/shm/sharing.h"

namespace penstock {
namespace fabric {
namespace shm {

// The callback of one Listen() or Connect(): called once, or dropped.
// Thread-safe.
class Attempt {
 public:
  explicit Attempt(ConnectCallback done) : done_(std::move(done)) {}

  // Calls the callback unless it has been called or dropped.
  void Finish(absl::StatusOr<std::unique_ptr<Endpoint>> result);
  void Cancel() { Take(); }
  bool pending() const;

 private:
  ConnectCallback Take();

  mutable std::mutex mu_;
  ConnectCallback done_;  // guarded by mu_
};

// Cancels an attempt, then calls `clean_up`, when destroyed.
class AttemptHandle : public PendingConnect {
 public:
  AttemptHandle(std::shared_ptr<Attempt> attempt,
                std::function<void()> clean_up)
      : attempt_(std::move(attempt)), clean_up_(std::move(clean_up)) {}
  ~AttemptHandle() override;

 private:
  const std::shared_ptr<Attempt> attempt_;
  const std::function<void()> clean_up_;
};

// The last step on both sides.
absl::StatusOr<std::unique_ptr<Endpoint>> MakeEndpoint(base::UniqueFd socket,
                                                       Segment control,
                                                       PeerSegment peer_control,
                                                       Sharing sharing);

}  // namespace shm
}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_SHM_ATTEMPT_H_
