// A client's attempts to get a path over shared memory to a server. The client
// already has a TCP connection to that server.

#ifndef PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_CALL_H_
#define PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_CALL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "transport/event_engine/meeting/tcp_address.h"
#include "transport/fabric/fabric.h"
#include "transport/fabric/shm/options.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {

// Asks the server at the UNIX socket of the listener's address, then at that of
// the wildcard address. Repeats this a few times, because the server may not
// have accepted the TCP connection yet. Works on the event loop's thread.
class MeetingCall : public std::enable_shared_from_this<MeetingCall> {
 public:
  // Calls `done` once, unless the handle is destroyed first.
  static std::unique_ptr<fabric::PendingConnect> Start(
      const TcpAddress& client, const TcpAddress& server,
      fabric::shm::Options options, fabric::ConnectCallback done);

 private:
  class Handle;

  MeetingCall(progress::EventLoop* loop, std::string token,
              std::vector<std::string> names, fabric::shm::Options options,
              fabric::ConnectCallback done);

  void AskOnLoop();
  void OnAnswerOnLoop(absl::StatusOr<std::unique_ptr<fabric::Endpoint>> answer);
  void StopOnLoop();

  progress::EventLoop* const loop_;
  const std::string token_;
  const std::vector<std::string> names_;
  const fabric::shm::Options options_;
  fabric::ConnectCallback done_;  // null once called or stopped
  size_t asked_ = 0;
  std::unique_ptr<fabric::PendingConnect> pending_;
};

}  // namespace event_engine
}  // namespace penstock

#endif  // PENSTOCK_TRANSPORT_EVENT_ENGINE_MEETING_CALL_H_
