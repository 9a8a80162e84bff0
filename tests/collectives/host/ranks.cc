#include "tests/collectives/host/ranks.h"

#include <functional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "collectives/host/group.h"
#include "collectives/host/meeting.h"
#include "gtest/gtest.h"

namespace penstock::collectives {

void RunRanksWith(int ranks,
                  const std::function<HostGroupOptions(int rank)>& options,
                  const std::function<void(HostGroup* group)>& run) {
  auto meeting = Meeting::Open();
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  const std::string invitation = meeting->invitation();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = rank == 0
                       ? HostGroup::Lead(*std::move(meeting), options(rank))
                       : HostGroup::Join(invitation, rank, options(rank));
      ASSERT_TRUE(group.ok()) << group.status();
      run(group->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void RunRanks(const HostGroupOptions& options,
              const std::function<void(HostGroup* group)>& run) {
  RunRanksWith(
      options.ranks, [&](int) { return options; }, run);
}

}  // namespace penstock::collectives
