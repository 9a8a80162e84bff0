#include "tests/collectives/net/ranks.h"

#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/net/group.h"
#include "collectives/net/listener.h"
#include "gtest/gtest.h"

namespace penstock::collectives {

ListenerOptions Over(std::vector<Fabric> fabrics) {
  ListenerOptions options;
  options.settings.fabrics = std::move(fabrics);
  return options;
}

Team OpenTeam(int ranks, const ListenerOptions& options) {
  Team team;
  for (int rank = 0; rank < ranks; ++rank) {
    auto listener = Listener::Open(options);
    EXPECT_TRUE(listener.ok()) << listener.status();
    team.addresses.push_back((*listener)->address());
    team.listeners.push_back(*std::move(listener));
  }
  return team;
}

void RunRanks(Team team, const NetGroupOptions& options,
              const std::function<void(NetGroup* group)>& run) {
  std::vector<std::thread> threads;
  for (size_t rank = 0; rank < team.listeners.size(); ++rank) {
    threads.emplace_back([&, rank] {
      NetGroupOptions own = options;
      own.rank = static_cast<int>(rank);
      auto group =
          NetGroup::Form(std::move(team.listeners[rank]), team.addresses, own);
      ASSERT_TRUE(group.ok()) << group.status();
      run(group->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace penstock::collectives
