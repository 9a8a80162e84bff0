// Registers the path of a connection for polling and for doorbells.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_PATH_WATCH_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_PATH_WATCH_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/event_engine/threads/crew.h"
#include "transport/fabric/fabric.h"
#include "transport/progress/poll_set.h"

namespace penstock {
namespace event_engine {

// Makes the crew poll `path` until this object is destroyed. One poll may still
// be running afterwards. Requires doorbells, because otherwise a sleeping
// thread would not notice input.
class PathWatch {
 public:
  // Delivers a bounded amount of the path's input. Returns true if there was
  // input. Called on any thread.
  using Poll = std::function<bool()>;

  // Fails if the path has no doorbell.
  static absl::StatusOr<std::unique_ptr<PathWatch>> Create(
      Crew* crew, std::shared_ptr<fabric::Endpoint> path, Poll poll);
  ~PathWatch();
  PathWatch(const PathWatch&) = delete;
  PathWatch& operator=(const PathWatch&) = delete;

 private:
  class Polled;

  PathWatch(Crew* crew, std::shared_ptr<Polled> polled);

  Crew* const crew_;
  const std::shared_ptr<Polled> polled_;
  const progress::PollSet::SlotId slot_;
  std::vector<Watches::Id> watches_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_PATH_WATCH_H_
