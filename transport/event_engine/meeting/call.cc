#include "transport/event_engine/meeting/call.h"

#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "transport/event_engine/meeting/redial.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/shm/connector.h"
#include "transport/fabric/shm/segment.h"
#include "transport/fabric/timed_setup.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace event_engine {
namespace {

// The pauses between rounds; each round asks at both names. A server that is
// not busy accepts within a millisecond, and forgets the connection after two
// seconds.
constexpr absl::Duration kPauses[] = {
    absl::Milliseconds(1), absl::Milliseconds(20), absl::Milliseconds(300)};

std::vector<absl::Duration> Pauses() {
  std::vector<absl::Duration> pauses = {absl::ZeroDuration()};
  for (absl::Duration pause : kPauses) {
    pauses.push_back(pause);
    pauses.push_back(absl::ZeroDuration());
  }
  return pauses;
}

}  // namespace

std::unique_ptr<fabric::PendingConnect> MeetingCall::Start(
    const TcpAddress& client, const TcpAddress& server,
    fabric::shm::Options options, fabric::ConnectCallback done) {
  const std::string token = MeetingToken(client, server);
  absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  absl::Status usable = loop.ok() ? fabric::shm::CheckKernel() : loop.status();
  if (!usable.ok()) {
    return fabric::FailLater(
        std::make_shared<fabric::Attempt>(token, std::move(done)), usable);
  }
  auto dial = [loop = *loop, token, options = std::move(options),
               next = MeetingName(server),
               other = MeetingName(server.Wildcard())](
                  fabric::ConnectCallback answered) mutable {
    const std::string name = next;
    next.swap(other);
    return fabric::TimedSetup::Launch(fabric::shm::Connector::Create(
        options, loop, {name, ""},
        std::make_shared<fabric::Attempt>(token, std::move(answered))));
  };
  return Redial::Start(std::move(dial), Pauses(), std::move(done));
}

}  // namespace event_engine
}  // namespace penstock
