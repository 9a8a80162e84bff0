// Makes TCP connections for gRPC.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_DIALER_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_DIALER_H_

#include <cstdint>
#include <map>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "grpc/event_engine/event_engine.h"
#include "transport/base/mutex.h"
#include "transport/event_engine/sockets/socket_options.h"
#include "transport/event_engine/threads/crew.h"

namespace penstock {
namespace event_engine {

// The attempts to connect that are in progress. Thread-safe. Lives as long as
// the process.
class Dialer {
 public:
  using EventEngine = grpc_event_engine::experimental::EventEngine;
  using OnConnect = EventEngine::OnConnectCallback;

  explicit Dialer(Crew* crew) : crew_(crew) {}
  Dialer(const Dialer&) = delete;
  Dialer& operator=(const Dialer&) = delete;

  // Connects to a TCP address. Calls `done` once, on the crew, unless Cancel()
  // succeeds.
  EventEngine::ConnectionHandle Connect(
      OnConnect done, const EventEngine::ResolvedAddress& address,
      const SocketOptions& options, absl::Duration timeout);
  // Returns true if `handle` was returned by this object.
  bool Owns(const EventEngine::ConnectionHandle& handle) const;
  // Ends an attempt, and destroys its callback. Returns false if the attempt
  // has ended.
  bool Cancel(const EventEngine::ConnectionHandle& handle);

 private:
  struct Attempt;
  using Id = intptr_t;

  absl::Status Begin(Id id, Attempt* attempt,
                     const EventEngine::ResolvedAddress& address,
                     const SocketOptions& options, absl::Duration timeout);
  // Ends an attempt, by a task of the crew. Only the first call has an effect.
  void EndSoon(Id id, const absl::Status& status);
  void End(Id id, const absl::Status& status);
  // Removes an attempt from the map and returns it. Afterwards no event reaches
  // the attempt. Returns null if there is no such attempt.
  std::shared_ptr<Attempt> Take(Id id);

  Crew* const crew_;
  base::Mutex mu_;
  Id next_id_ ABSL_GUARDED_BY(mu_) = 1;
  std::map<Id, std::shared_ptr<Attempt>> attempts_ ABSL_GUARDED_BY(mu_);
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_SOCKETS_DIALER_H_
