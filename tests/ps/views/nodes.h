// Servers that keep their views in one etcd, in this process.

#ifndef PENSTOCK_TESTS_PS_VIEWS_NODES_H_
#define PENSTOCK_TESTS_PS_VIEWS_NODES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/clock.h"
#include "ps/membership/membership.h"
#include "ps/replication/view_follower.h"
#include "ps/views/board.h"
#include "ps/views/keeping.h"
#include "tests/ps/etcd/fake_etcd.h"
#include "transport/base/steady_time.h"

namespace penstock::ps::views {

constexpr uint64_t kRun = 7;
constexpr absl::Duration kTimeout = absl::Seconds(20);

// Replicas whose reports the test sets.
class Replicas final : public replication::ViewFollower {
 public:
  explicit Replicas(const replication::ReplicaId& self) : self_(self) {}

  replication::ReplicaId self() const override { return self_; }
  absl::optional<uint64_t> run() const override {
    absl::MutexLock lock(&mu_);
    return run_;
  }
  absl::Status OnView(const replication::View& view) override {
    absl::MutexLock lock(&mu_);
    if (refusals_ > 0) {
      --refusals_;
      return absl::FailedPreconditionError("not yet");
    }
    view_ = view;
    return absl::OkStatus();
  }
  std::vector<Request> Requests() override {
    absl::MutexLock lock(&mu_);
    std::vector<Request> requests;
    for (uint32_t i = 0; i < view_.shards.size(); ++i) {
      if (view_.shards[i].primary != self_) continue;
      Request request{i, view_.number, true, {}, overdue_};
      if (completes_) request.complete = view_.shards[i].joiners;
      requests.push_back(request);
    }
    return requests;
  }

  void SetRun(uint64_t run) {
    absl::MutexLock lock(&mu_);
    run_ = run;
  }
  void SetCompletes(bool completes) {
    absl::MutexLock lock(&mu_);
    completes_ = completes;
  }
  void Complain(const replication::ReplicaId& replica) {
    absl::MutexLock lock(&mu_);
    overdue_ = {{replica, "slow"}};
  }
  void Refuse(int times) {
    absl::MutexLock lock(&mu_);
    refusals_ = times;
  }
  replication::View view() const {
    absl::MutexLock lock(&mu_);
    return view_;
  }

 private:
  const replication::ReplicaId self_;
  mutable absl::Mutex mu_;
  absl::optional<uint64_t> run_ ABSL_GUARDED_BY(mu_);
  replication::View view_ ABSL_GUARDED_BY(mu_);
  bool completes_ ABSL_GUARDED_BY(mu_) = true;
  int refusals_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<replication::Primary::Complaint> overdue_ ABSL_GUARDED_BY(mu_);
};

// A server process in the test: its registration, its replicas and its keeper.
class Node {
 public:
  Node(const std::string& etcd, int number, uint64_t incarnation,
       uint32_t backups, absl::Duration settle)
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
    server.set_replicas(backups);
    const absl::Status registered =
        member_->RegisterServer(server, absl::Milliseconds(150), nullptr);
    EXPECT_TRUE(registered.ok()) << registered;
    Keeping::Options options;
    options.member = member_.get();
    options.follower = &replicas;
    options.board = &board_;
    options.settle = settle;
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

const std::vector<std::string> kAllAtHome = {"ps0:1", "ps1:1", "ps2:1"};

// Three servers. Each shard has one backup.
class NodesTest : public testing::Test {
 protected:
  NodesTest() {
    for (int i = 0; i < 3; ++i) Start(i, 100 + static_cast<uint64_t>(i));
  }

  void Start(int number, uint64_t incarnation, uint32_t backups = 1,
             absl::Duration settle = absl::Milliseconds(300)) {
    const size_t count = static_cast<size_t>(number) + 1;
    if (nodes_.size() < count) nodes_.resize(std::max<size_t>(3, count));
    nodes_[static_cast<size_t>(number)] = std::make_unique<Node>(
        etcd_.address(), number, incarnation, backups, settle);
  }

  // Waits until all live nodes have the same view, and `is_wanted` accepts it.
  bool Await(const std::function<bool(const replication::View&)>& is_wanted) {
    const absl::Time limit = base::SteadyNow() + kTimeout;
    while (base::SteadyNow() < limit) {
      std::vector<replication::View> views;
      for (const auto& node : nodes_) {
        if (node != nullptr) views.push_back(node->replicas.view());
      }
      const bool is_one = std::all_of(
          views.begin(), views.end(),
          [&](const replication::View& view) { return view == views[0]; });
      if (is_one && is_wanted(views[0])) return true;
      absl::SleepFor(absl::Milliseconds(10));
    }
    return false;
  }

  static bool IsComplete(const replication::View& view) {
    return view.number > 0 &&
           std::all_of(view.shards.begin(), view.shards.end(),
                       [](const replication::ShardReplicas& shard) {
                         return shard.backups.size() == 1 &&
                                shard.joiners.empty();
                       });
  }

  static std::vector<std::string> PrimariesOf(const replication::View& view) {
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

}  // namespace penstock::ps::views

#endif  // PENSTOCK_TESTS_PS_VIEWS_NODES_H_
