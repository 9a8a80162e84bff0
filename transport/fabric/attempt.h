// An attempt to make a connection, and its callback.

#ifndef PENSTOCK_TRANSPORT_FABRIC_ATTEMPT_H_
#define PENSTOCK_TRANSPORT_FABRIC_ATTEMPT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "transport/base/mutex.h"
#include "transport/fabric/fabric.h"

namespace penstock {
namespace fabric {

// One Listen() or Connect() that has not ended. Owns its callback, and calls
// the callback once, or never if the attempt is cancelled first. Thread-safe.
class Attempt {
 public:
  Attempt(std::string token, ConnectCallback done)
      : token_(std::move(token)), done_(std::move(done)) {}

  const std::string& token() const { return token_; }
  // Calls the callback on this thread, unless it was called or dropped before.
  void Finish(absl::StatusOr<std::unique_ptr<Endpoint>> result);
  // Drops the callback.
  void Cancel() { Take(); }
  // Returns true until the callback is called or dropped.
  bool pending() const;

 private:
  ConnectCallback Take();

  const std::string token_;
  mutable base::Mutex mu_;
  ConnectCallback done_ ABSL_GUARDED_BY(mu_);
};

// Cancels an attempt when destroyed, then calls `clean_up` if there is one.
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

// Finishes `attempt` with `error`, soon, on the event loop's thread. Destroying
// the returned handle before then cancels the attempt. If there is no event
// loop, finishes the attempt within this call.
std::unique_ptr<PendingConnect> FailLater(std::shared_ptr<Attempt> attempt,
                                          absl::Status error);

}  // namespace fabric
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_FABRIC_ATTEMPT_H_
