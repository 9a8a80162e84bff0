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

void RunRanks(const HostGroupOptions& options,
              const std::function<void(HostGroup* group)>& run) {
  auto meeting = Meeting::Open();
  ASSERT_TRUE(meeting.ok()) << meeting.status();
  const std::string invitation = meeting->invitation();
  std::vector<std::thread> threads;
  for (int rank = 0; rank < options.ranks; ++rank) {
    threads.emplace_back([&, rank] {
      auto group = rank == 0 ? HostGroup::Lead(*std::move(meeting), options)
                             : HostGroup::Join(invitation, rank, options);
      ASSERT_TRUE(group.ok()) << group.status();
      run(group->get());
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace penstock::collectives
