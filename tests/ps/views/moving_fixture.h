// A fixture for the commands that move shards, with keepers and one etcd, in
// this process.

#ifndef PENSTOCK_TESTS_PS_VIEWS_MOVING_FIXTURE_H_
#define PENSTOCK_TESTS_PS_VIEWS_MOVING_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/membership/membership.h"
#include "ps/replication/replica_list.h"
#include "ps/views/moving.h"
#include "tests/ps/views/nodes.h"

namespace penstock::ps::views {

class MovingTest : public NodesTest {
 protected:
  MovingTest() {
    auto member = membership::Membership::Open(
        absl::StrCat("etcd://", etcd_.address(), "/t"));
    EXPECT_TRUE(member.ok()) << member.status();
    member_ = *std::move(member);
    options_.member = member_.get();
    options_.timeout = kTimeout;
    options_.gone_after = absl::Milliseconds(700);
    options_.progress = [this](const std::string& line) {
      said_.push_back(line);
    };
  }

  // Calls `act` on another thread once a replica joins.
  std::thread OnceOneJoins(std::function<void()> act) {
    return std::thread([this, act = std::move(act)] {
      while (nodes_[0]->replicas.view().shards[0].joiners.empty()) {
        absl::SleepFor(absl::Milliseconds(5));
      }
      act();
    });
  }

  size_t PartsOfServer(int number) const {
    const Node& node = *nodes_[static_cast<size_t>(number)];
    return replication::PartsOf(nodes_[0]->replicas.view(),
                                node.replicas.self());
  }

  std::string said() const { return absl::StrJoin(said_, "\n"); }

  std::unique_ptr<membership::Membership> member_;
  MovingOptions options_;
  std::vector<std::string> said_;
};

}  // namespace penstock::ps::views

#endif  // PENSTOCK_TESTS_PS_VIEWS_MOVING_FIXTURE_H_
