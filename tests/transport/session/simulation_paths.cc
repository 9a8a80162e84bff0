// Sets up, polls and loses paths, as the owners of the sessions do.

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "tests/transport/session/simulation.h"

namespace penstock {
namespace session {
namespace {

constexpr size_t kMaxLinks = 6;

}  // namespace

void Simulation::Connect() {
  if (!client_.connect_wanted) return;
  client_.connect_wanted = false;
  const uint32_t epoch = client_.session->path().epoch();
  if (Roll(8) == 0 || server_.session->path().epoch() != epoch) {
    client_.session->path().OnFailure("shm", absl::UnavailableError("refused"));
    return;
  }
  links_.push_back(std::make_unique<Link>(RandomLink(/*is_lifeline=*/false)));
  for (Owner* owner : {&client_, &server_}) {
    owner->path = fast()->Take(owner->side);
    owner->path_epoch = epoch;
  }
}

void Simulation::Listen() {
  if (!server_.listen_wanted) return;
  server_.listen_wanted = false;
  if (Roll(8) == 0) {
    server_.session->path().OnFailure("shm", absl::UnavailableError("no room"));
  } else {
    server_.session->path().Offer(kToken);
  }
}

void Simulation::AddPath(Owner* owner) {
  const std::shared_ptr<fabric::Endpoint> path = std::move(owner->path);
  if (path == nullptr) return;
  // Drops a path that comes too late.
  if (owner->path_epoch != owner->session->path().epoch()) return;
  if (owner == &server_ && Roll(10) == 0) {
    owner->session->path().OnFailure("shm",
                                     absl::UnavailableError("timed out"));
    return;
  }
  owner->session->path().Add("shm", path);
  owner->awake = true;
  owner->armed = false;
}

void Simulation::RetryPath() {
  if (links_.size() < kMaxLinks) client_.session->path().Retry();
}

void Simulation::FailSomething() {
  if (fast() == nullptr) return;
  const Side side = Pick({Side::kA, Side::kB});
  const int nth = 1 + Roll(20);
  client_.awake = server_.awake = true;  // both sides notice every failure
  switch (Roll(6)) {
    case 0:
      return fast()->Drop();
    case 1:
      return fast()->DropOneSide(side);
    case 2:
      return fast()->FailNthSend(side, nth);
    default:
      fast()->FailNthRead(side, nth);
      return fast()->FailNthExpose(side, 1 + Roll(5));
  }
}

bool Simulation::PollPath(Owner* owner) {
  std::shared_ptr<fabric::Endpoint> path = owner->session->path().endpoint();
  if (path == nullptr) return false;
  // Wakes the owner of the path if a read has completed.
  const uint64_t reads = fast()->counters(owner->side).reads;
  if (reads != owner->reads) owner->awake = true;
  owner->reads = reads;
  if (owner->armed && !owner->awake) return false;
  const bool any =
      Roll(4) == 0 ? owner->session->Poll() : fast()->Step(owner->side);
  if (!path->HasInput()) owner->awake = false;
  return any;
}

void Simulation::ToggleArmed(Owner* owner) {
  std::shared_ptr<fabric::Endpoint> path = owner->session->path().endpoint();
  if (path == nullptr) return;
  owner->armed = !owner->armed;
  path->SetArmed(owner->armed);
  if (owner->armed) owner->awake = path->HasInput();
}

}  // namespace session
}  // namespace penstock
