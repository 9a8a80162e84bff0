#include "transport/fabric/tcp/stripes/listener.h"

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/hash/hash.h"
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
            int most, absl::Duration limit)
      : TimedSetup(loop, std::move(attempt), limit,
                   "the peer did not open its sockets in time"),
        most_(most) {}

  // Closes a socket that does not belong here.
  void Add(base::UniqueFd socket, const Greeting& greeting) {
    if (sockets_.empty() && greeting.count <= most_) {
      sockets_.resize(greeting.count);
    }
    if (greeting.count != sockets_.size() || sockets_[greeting.index].valid()) {
      return;
    }
    sockets_[greeting.index] = std::move(socket);
    const bool is_complete =
        std::all_of(sockets_.begin(), sockets_.end(),
                    [](const base::UniqueFd& each) { return each.valid(); });
    if (is_complete) {
      FinishOnLoop(StripesEndpoint::Create(std::exchange(sockets_, {})));
    }
  }

 private:
  void BeginOnLoop() override {
    if (!WaitingOfProcess()->all.emplace(attempt().token(), this).second) {
      FinishOnLoop(absl::AlreadyExistsError("two sessions have one token"));
    }
  }
  void ReleaseOnLoop() override {
    sockets_.clear();
    auto& all = WaitingOfProcess()->all;
    const auto it = all.find(attempt().token());
    if (it != all.end() && it->second == this) all.erase(it);
  }

  const size_t most_;
  std::vector<base::UniqueFd> sockets_;  // by index
};

}  // namespace

std::unique_ptr<PendingConnect> AwaitStripes(std::shared_ptr<Attempt> attempt,
                                             int most, absl::Duration limit) {
  const absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return FailLater(std::move(attempt), loop.status());
  return TimedSetup::Launch(
      std::make_shared<Gathering>(*loop, std::move(attempt), most, limit));
}

void GiveStripe(base::UniqueFd socket, const Greeting& greeting) {
  const absl::StatusOr<progress::EventLoop*> loop = progress::EventLoop::Get();
  if (!loop.ok()) return;
  // A callback must be copyable.
  auto shared = std::make_shared<base::UniqueFd>(std::move(socket));
  (*loop)->Post([shared, greeting] {
    const auto& all = WaitingOfProcess()->all;
    const auto it = all.find(greeting.token);
    if (it != all.end()) it->second->Add(std::move(*shared), greeting);
  });
}

}  // namespace stripes
}  // namespace fabric
}  // namespace penstock
