// Tests the keepers of several servers with one etcd, in this process.

#include "ps/views/keeping.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "ps/membership/membership.h"
#include "ps/replication/view_wire.h"
#include "tests/ps/etcd/fake_etcd.h"

namespace penstock::ps::views {
namespace {

using replication::ReplicaId;
using replication::View;
using replication::ViewFollower;
using testing::Contains;
using testing::HasSubstr;

constexpr uint64_t kRun = 7;
constexpr absl::Duration kTimeout = absl::Seconds(20);

// Replicas that do as the test says.
class Replicas final : public ViewFollower {
 public:
  explicit Replicas(const ReplicaId& self) : self_(self) {}

  ReplicaId self() const override { return self_; }
  absl::optional<uint64_t> run() const override {
    absl::MutexLock lock(&mu_);
    return run_;
  }
  absl::Status OnView(const View& view) override {
    absl::MutexLock lock(&mu_);
    if (refusals_ > 0) {
      --refusals_;
      return absl::FailedPreconditionError("not yet");
    }
    view_ = view;
    return absl::OkStatus();
  }
  std::vector<Wish> Wishes() override {
    absl::MutexLock lock(&mu_);
    std::vector<Wish> wishes;
    for (uint32_t i = 0; i < view_.shards.size(); ++i) {
      if (view_.shards[i].primary != self_) continue;
      Wish wish{i, view_.number, {}, overdue_};
      if (completes_) wish.complete = view_.shards[i].joiners;
      wishes.push_back(wish);
    }
    return wishes;
  }

  void SetRun(uint64_t run) {
    absl::MutexLock lock(&mu_);
    run_ = run;
  }
  void SetCompletes(bool completes) {
    absl::MutexLock lock(&mu_);
    completes_ = completes;
  }
  void Complain(const ReplicaId& replica) {
    absl::MutexLock lock(&mu_);
    overdue_ = {{replica, "slow"}};
  }
  void Refuse(int times) {
    absl::MutexLock lock(&mu_);
    refusals_ = times;
  }
  View view() const {
    absl::MutexLock lock(&mu_);
    return view_;
  }

 private:
  const ReplicaId self_;
  mutable absl::Mutex mu_;
  absl::optional<uint64_t> run_ ABSL_GUARDED_BY(mu_);
  View view_ ABSL_GUARDED_BY(mu_);
  bool completes_ ABSL_GUARDED_BY(mu_) = true;
  int refusals_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<replication::Primary::Complaint> overdue_ ABSL_GUARDED_BY(mu_);
};

// A server process: its registration, its replicas and its keeper.
class Node {
 public:
  Node(const std::string& etcd, int number, uint64_t incarnation)
      : replicas({absl::StrCat("ps", number, ":1"), incarnation}) {
    auto member =
        membership::Membership::Open(absl::StrCat("etcd://", etcd, "/t"));
    EXPECT_TRUE(member.ok()) << member.status();
    member_ = *std::move(member);
    membership::v1::Server server;
    server.set_name(absl::StrCat("ps", number));
    server.set_address(replicas.self().server);
    server.set_incarnation(incarnation);
    server.set_servers(3);
    server.set_replicas(1);
    const absl::Status registered =
        member_->RegisterServer(server, absl::Milliseconds(150), nullptr);
    EXPECT_TRUE(registered.ok()) << registered;
    Keeping::Options options;
    options.member = member_.get();
    options.follower = &replicas;
    options.board = &board_;
    options.settle = absl::Milliseconds(300);
    options.round = absl::Milliseconds(10);
    options.log = [this](const std::string& line) {
      absl::MutexLock lock(&mu_);
      log_.push_back(line);
    };
    keeping_ = std::make_unique<Keeping>(options);
  }

  std::string log() const {
    absl::MutexLock lock(&mu_);
    return absl::StrJoin(log_, "\n");
  }
  Known known() const { return board_.Get(); }

  Replicas replicas;

 private:
  mutable absl::Mutex mu_;
  std::vector<std::string> log_ ABSL_GUARDED_BY(mu_);
  Board board_;
  std::unique_ptr<membership::Membership> member_;
  std::unique_ptr<Keeping> keeping_;
};

class KeepingTest : public testing::Test {
 protected:
  KeepingTest() {
    for (int i = 0; i < 3; ++i) Start(i, 100 + static_cast<uint64_t>(i));
  }

  void Start(int number, uint64_t incarnation) {
    if (nodes_.size() < 3) nodes_.resize(3);
    nodes_[static_cast<size_t>(number)] =
        std::make_unique<Node>(etcd_.address(), number, incarnation);
  }

  // Waits until all live nodes have one view, which is as wanted.
  bool Await(const std::function<bool(const View&)>& is_wanted) {
    const absl::Time limit = base::SteadyNow() + kTimeout;
    while (base::SteadyNow() < limit) {
      std::vector<View> views;
      for (const auto& node : nodes_) {
        if (node != nullptr) views.push_back(node->replicas.view());
      }
      const bool is_one =
          std::all_of(views.begin(), views.end(),
                      [&](const View& view) { return view == views[0]; });
      if (is_one && is_wanted(views[0])) return true;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return false;
  }

  static bool IsComplete(const View& view) {
    return view.number > 0 &&
           std::all_of(view.shards.begin(), view.shards.end(),
                       [](const replication::ShardReplicas& shard) {
                         return shard.backups.size() == 1 &&
                                shard.joiners.empty();
                       });
  }

  static std::vector<std::string> PrimariesOf(const View& view) {
    std::vector<std::string> primaries;
    for (const auto& shard : view.shards) {
      primaries.push_back(shard.primary.server);
    }
    return primaries;
  }

  void Begin() {
    for (const auto& node : nodes_) node->replicas.SetRun(kRun);
    ASSERT_TRUE(Await(IsComplete)) << nodes_[0]->log();
  }

  etcd::FakeEtcd etcd_;
  std::vector<std::unique_ptr<Node>> nodes_;
};

const std::vector<std::string> kAllAtHome = {"ps0:1", "ps1:1", "ps2:1"};

TEST_F(KeepingTest, TheFirstViewWaitsForTheRunAndBecomesComplete) {
  nodes_[1]->replicas.SetRun(kRun);
  absl::SleepFor(absl::Milliseconds(100));
  EXPECT_EQ(nodes_[0]->replicas.view().number, 0u);
  Begin();
  EXPECT_EQ(PrimariesOf(nodes_[2]->replicas.view()), kAllAtHome);
  EXPECT_EQ(nodes_[2]->known().servers, kAllAtHome);
  EXPECT_THAT(nodes_[2]->log(), HasSubstr("shard 0 at ps0:1, backup ps1:1"));
}

TEST_F(KeepingTest, AServerThatIsGoneIsReplacedAndReturnsAsABackup) {
  Begin();
  nodes_[1] = nullptr;  // deletes its key, as the end of its lease does
  ASSERT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) ==
               std::vector<std::string>({"ps0:1", "ps2:1", "ps2:1"}) &&
           IsComplete(view);
  })) << nodes_[0]->log();
  EXPECT_EQ(nodes_[0]->known().servers, kAllAtHome);
  Start(1, 901);
  nodes_[0]->replicas.Complain(nodes_[2]->replicas.self());
  ASSERT_TRUE(Await([](const View& view) {
    return IsComplete(view) &&
           view.shards[0].backups[0] == ReplicaId{"ps1:1", 901};
  })) << nodes_[0]->log();
}

TEST_F(KeepingTest, NobodyIsDroppedIfEtcdHasEndedAllLeases) {
  Begin();
  const View before = nodes_[0]->replicas.view();
  etcd_.ExpireLeases();
  absl::SleepFor(absl::Milliseconds(600));
  EXPECT_EQ(nodes_[0]->replicas.view(), before) << nodes_[0]->log();
  // Later, deaths are seen again.
  nodes_[2] = nullptr;
  EXPECT_TRUE(Await([](const View& view) {
    return PrimariesOf(view) ==
           std::vector<std::string>({"ps0:1", "ps1:1", "ps0:1"});
  })) << nodes_[0]->log();
}

TEST_F(KeepingTest, ViewsFreezeWhileEtcdIsAway) {
  Begin();
  const View before = nodes_[0]->replicas.view();
  etcd_.SetAway(true);
  nodes_[0]->replicas.Complain(nodes_[1]->replicas.self());
  absl::SleepFor(absl::Milliseconds(400));
  EXPECT_EQ(nodes_[0]->replicas.view(), before);
  etcd_.SetAway(false);
  EXPECT_TRUE(Await([&](const View& view) {
    return IsComplete(view) && view.shards[0].backups[0].server == "ps2:1";
  })) << nodes_[0]->log();
}

TEST_F(KeepingTest, AViewThatGoesBackIsNotTaken) {
  Begin();
  const View before = nodes_[0]->replicas.view();
  membership::v1::View old;
  old.set_number(1);
  View first = *replication::FirstView(
      kRun, {before.shards[0].primary, before.shards[1].primary}, 0);
  old.set_decision(replication::ToBytes(first));
  old.add_servers("ps0:1");
  old.add_servers("ps1:1");
  etcd_.Put("t/view", old.SerializeAsString());
  const absl::Time limit = base::SteadyNow() + kTimeout;
  while (nodes_[0]->log().find("restored from a backup") == std::string::npos) {
    ASSERT_LT(base::SteadyNow(), limit) << nodes_[0]->log();
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_EQ(nodes_[0]->replicas.view(), before);
  etcd_.Put("t/view", "nonsense");
  while (nodes_[0]->log().find("is no view") == std::string::npos) {
    ASSERT_LT(base::SteadyNow(), limit) << nodes_[0]->log();
    absl::SleepFor(absl::Milliseconds(10));
  }
}

TEST_F(KeepingTest, AViewThatIsRefusedComesAgain) {
  nodes_[2]->replicas.Refuse(3);
  Begin();
  EXPECT_THAT(nodes_[2]->log(), HasSubstr("not yet"));
}

TEST_F(KeepingTest, AShardWithoutReplicasIsNamed) {
  nodes_[0]->replicas.SetCompletes(false);
  nodes_[0]->replicas.SetRun(kRun);
  ASSERT_TRUE(Await([](const View& view) {
    return view.number > 1 && view.shards[0].backups.empty();
  }));
  nodes_[0] = nullptr;
  const absl::Time limit = base::SteadyNow() + kTimeout;
  while (nodes_[1]->known().lost.empty()) {
    ASSERT_LT(base::SteadyNow(), limit) << nodes_[1]->log();
    absl::SleepFor(absl::Milliseconds(10));
  }
  EXPECT_THAT(nodes_[1]->known().lost, Contains(0u));
  EXPECT_THAT(nodes_[1]->log(), HasSubstr("start all servers anew"));
}

}  // namespace
}  // namespace penstock::ps::views
