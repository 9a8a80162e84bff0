#include "tests/collectives/net/ranks.h"

#include <chrono>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "collectives/net/group.h"
#include "collectives/net/listener.h"
#include "gtest/gtest.h"

namespace penstock::collectives {
namespace {

// Limits the wait for a rank that has failed and waits nowhere. Below the time
// limit of a small test.
constexpr std::chrono::seconds kLimit(30);

void RunOnThreads(size_t count, const std::function<void(size_t number)>& run) {
  std::vector<std::thread> threads;
  for (size_t number = 0; number < count; ++number) {
    threads.emplace_back(run, number);
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace

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
  const size_t ranks = team.listeners.size();
  std::vector<absl::StatusOr<std::unique_ptr<NetGroup>>> groups(ranks);
  RunOnThreads(ranks, [&](size_t rank) {
    NetGroupOptions own = options;
    own.rank = static_cast<int>(rank);
    groups[rank] =
        NetGroup::Form(std::move(team.listeners[rank]), team.addresses, own);
  });
  for (const auto& group : groups) ASSERT_TRUE(group.ok()) << group.status();
  RunOnThreads(ranks, [&](size_t rank) {
    const std::unique_ptr<NetGroup> group = *std::move(groups[rank]);
    run(group.get());
  });
}

void Meet::Wait() {
  if (--left_ == 0) all_.set_value();
  EXPECT_EQ(future_.wait_for(kLimit), std::future_status::ready)
      << "a rank did not come to the end of its part";
}

}  // namespace penstock::collectives
