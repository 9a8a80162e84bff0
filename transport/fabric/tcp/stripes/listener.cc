#include "transport/fabric/tcp/stripes/listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
#include "transport/base/descriptors.h"
#include "transport/base/per_process.h"
#include "transport/fabric/tcp/stripes/endpoint.h"
#include "transport/fabric/timed_setup.h"
#include "transport/progress/event_loop.h"

namespace penstock {
namespace fabric {
namespace stripes {
namespace {

class Gathering;

// The sessions that wait for stripes, by token. Used on the loop's thread only.
// The hash has a secret seed, so the time of a look-up tells nothing about the
// tokens.
struct Waiting {
  std::unordered_map<std::string, Gathering*, absl::Hash<std::string>> all;
};

Waiting* WaitingOfProcess() { return base::PerProcess<Waiting>::Get(); }

// The stripes of one session, until all are there.
class Gathering : public TimedSetup {
 public:
  Gathering(progress::EventLoop* loop, std::shared_ptr<Attempt> attempt,
            const Address& peer, int most, absl::Duration limit)
      : TimedSetup(loop, std::move(attempt), limit,
                   "the peer did not open its sockets in time"),
        peer_(peer),
        most_(most) {}

  // Adds the socket, or ends it if it does not belong to this session.
  void Add(base::UniqueFd socket, const Greeting& greeting) {
    if (!Fits(socket.get(), greeting)) return EndSocket(std::move(socket));
    sockets_[greeting.index] = std::move(socket);
    // Checks the free descriptors after each socket, because other sessions
    // gather sockets, too.
    const absl::Status room = base::Descriptors::Now().CheckForPath();
    if (!room.ok()) return FinishOnLoop(room);
    const bool is_complete =
        std::all_of(sockets_.begin(), sockets_.end(),
                    [](const base::UniqueFd& each) { return each.valid(); });
    if (is_complete) AnswerAll();
  }

 private:
  bool Fits(int fd, const Greeting& greeting) {
    const absl::StatusOr<Address> from = Address::OfPeer(fd);
    if (!from.ok() || !from->IsSameHost(peer_)) return false;
    if (sockets_.empty() && greeting.count <= most_) {
      sockets_.resize(greeting.count);
    }
    return greeting.count == sockets_.size() &&
           !sockets_[greeting.index].valid();
  }
  void AnswerAll() {
    for (const base::UniqueFd& socket : sockets_) {
      // Ignores errors: a new socket has room for these bytes, and if it has
      // failed, the endpoint reports the failure.
      (void)send(socket.get(), Answer().data(), Answer().size(),
                 MSG_NOSIGNAL | MSG_DONTWAIT);
    }
    FinishOnLoop(StripesEndpoint::Create(std::exchange(sockets_, {})));
  }
  void BeginOnLoop() override {
    if (!WaitingOfProcess()->all.emplace(attempt().token(), this).second) {
      FinishOnLoop(absl::AlreadyExistsError("two sessions have one token"));
    }
  }
  void ReleaseOnLoop() override {
    for (base::UniqueFd& socket : sockets_) EndSocket(std::move(socket));
    sockets_.clear();
    auto& all = WaitingOfProcess()->all;
    const auto it = all.find(attempt().token());
    if (it != all.end() && it->second == this) all.erase(it);
  }

  const Address peer_;
  const size_t most_;
  std::vector<base::UniqueFd> sockets_;  // by index
};

}  // namespace

std::unique_ptr<PendingConnect> AwaitStripes(std::shared_ptr<Attempt> attempt,
                                             const Address& peer, int most,
                                             absl::Duration limit) {
  const absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return FailLater(std::move(attempt), loop.status());
  return TimedSetup::Launch(std::make_shared<Gathering>(
      *loop, std::move(attempt), peer, most, limit));
}

void GiveStripe(base::UniqueFd socket, const Greeting& greeting) {
  const absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return EndSocket(std::move(socket));
  // Makes the socket shared, because a callback must be copyable.
  auto shared = std::make_shared<base::UniqueFd>(std::move(socket));
  (*loop)->Post([shared, greeting] {
    const auto& all = WaitingOfProcess()->all;
    const auto it = all.find(greeting.token);
    if (it == all.end()) return EndSocket(std::move(*shared));
    it->second->Add(std::move(*shared), greeting);
  });
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
