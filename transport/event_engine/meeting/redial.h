// Repeats attempts to connect.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_REDIAL_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_REDIAL_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "transport/fabric/fabric.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {

// Makes one attempt after another, until an attempt succeeds or the pauses are
// used up. Works on the event loop's thread.
class Redial : public std::enable_shared_from_this<Redial> {
 public:
  // Begins one attempt. Called on the event loop's thread.
  using Dial = std::function<std::unique_ptr<fabric::PendingConnect>(
      fabric::ConnectCallback answered)>;

  // Makes one attempt more than there are `pauses`. Calls `done` once, with the
  // last result, unless the handle is destroyed first.
  static std::unique_ptr<fabric::PendingConnect> Start(
      Dial dial, std::vector<absl::Duration> pauses,
      fabric::ConnectCallback done);

 private:
  class Handle;

  Redial(progress::EventLoop* loop, Dial dial,
         std::vector<absl::Duration> pauses, fabric::ConnectCallback done);

  void DialOnLoop();
  void OnAnswerOnLoop(absl::StatusOr<std::unique_ptr<fabric::Endpoint>> answer);
  void StopOnLoop();

  progress::EventLoop* const loop_;
  const Dial dial_;
  const std::vector<absl::Duration> pauses_;
  fabric::ConnectCallback done_;  // null once called or stopped
  size_t dialed_ = 0;
  std::unique_ptr<fabric::PendingConnect> pending_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_REDIAL_H_
