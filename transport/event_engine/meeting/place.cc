#include "transport/event_engine/meeting/place.h"

#include <utility>

#include "absl/memory/memory.h"
#include "transport/fabric/attempt.h"
#include "transport/fabric/shm/segment.h"

namespace penstock {
namespace event_engine {

absl::StatusOr<std::unique_ptr<MeetingPlace>> MeetingPlace::Open(
    const TcpAddress& listener, fabric::shm::Options options) {
  absl::Status kernel = fabric::shm::CheckKernel();
  if (!kernel.ok()) return kernel;
  absl::StatusOr<std::shared_ptr<fabric::shm::Listener>> opened =
      fabric::shm::Listener::CreateAt({MeetingName(listener), ""},
                                      std::move(options));
  if (!opened.ok()) return opened.status();
  return absl::WrapUnique(new MeetingPlace(*std::move(opened)));
}

std::unique_ptr<fabric::PendingConnect> MeetingPlace::Expect(
    const TcpAddress& client, const TcpAddress& server,
    fabric::ConnectCallback done) {
  return listener_->Expect(std::make_shared<fabric::Attempt>(
      MeetingToken(client, server), std::move(done)));
}

}  // namespace event_engine
}  // namespace penstock
