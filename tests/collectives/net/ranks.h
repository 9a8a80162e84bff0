// The ranks of a group across hosts as threads of a test.

#ifndef PENSTOCK_TESTS_COLLECTIVES_NET_RANKS_H_
#define PENSTOCK_TESTS_COLLECTIVES_NET_RANKS_H_

#include <atomic>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/net/group.h"
#include "collectives/net/listener.h"

namespace penstock::collectives {

// Returns options whose connections use `fabrics`, best first.
ListenerOptions Over(std::vector<Fabric> fabrics);

// The listeners of all ranks, which Open() opens, with their addresses.
struct Team {
  std::vector<std::unique_ptr<Listener>> listeners;
  std::vector<std::string> addresses;
};
Team OpenTeam(int ranks, const ListenerOptions& options);

// Forms a group. If all ranks have formed the group, calls `run` for each rank
// on its own thread. A rank leaves when its call of `run` returns. Returns when
// all calls have returned.
void RunRanks(Team team, const NetGroupOptions& options,
              const std::function<void(NetGroup* group)>& run);

// A barrier. Tests wait here before ranks leave the group. Otherwise a rank
// might report that another rank has left.
class Meet {
 public:
  explicit Meet(int ranks) : left_(ranks) {}
  // Fails the test after half a minute: an assertion may have ended a rank.
  void Wait();

 private:
  std::atomic<int> left_;
  std::promise<void> all_;
  std::shared_future<void> future_ = all_.get_future().share();
};

}  // namespace penstock::collectives

#endif  // PENSTOCK_TESTS_COLLECTIVES_NET_RANKS_H_
