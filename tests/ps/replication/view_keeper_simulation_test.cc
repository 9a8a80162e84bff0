// Checks the views that the keepers of several servers make together:
// - each is a successor of the view before;
// - a replica is removed only if it is dead, if its primary complained about
//   it, or if operators want it elsewhere;
// - a move that people want never leaves a shard with fewer copies;
// - a joiner becomes a backup only if the primary of the view before says so;
// - no shard is lost while a primary or backup of it lives;
// - once there are no more faults, each shard gets all its backups, moves are
//   done, and then no new views are made.
//
// view_keeper_simulation_test [--seeds=N] [--first=S] runs more seeds, or
// repeats one.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "ps/replication/replica_list.h"
#include "ps/replication/view_keeper.h"
#include "tests/ps/seeds.h"
#include "tests/ps/simulation/dice.h"

namespace penstock::ps::replication {
namespace {

using Replicas = std::vector<ReplicaId>;

constexpr uint64_t kRun = 7;

// Servers with their keepers, a store of the views, and a list of the live
// servers, which the keepers read late.
class World {
 public:
  explicit World(uint64_t seed) : dice_(seed) {
    const size_t count = 2 + dice_.Below(5);
    backups_ = dice_.Below(std::min<uint64_t>(count, 4));
    servers_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      servers_[i].id.server = absl::StrCat("ps", i, ":1");
      Start(&servers_[i]);
      moves_.own_servers.push_back(servers_[i].id.server);
    }
    lists_.push_back(Listed());
  }

  void Run() {
    const uint64_t steps = 50 + dice_.Below(400);
    for (uint64_t i = 0; i < steps && error_.empty(); ++i) Step();
    is_fair_ = true;
    for (Server& server : servers_) {
      server.is_away = false;
      if (!server.is_up) Start(&server);
    }
    DrawRequest();
    // A server that leaves before the first view keeps the training from its
    // beginning.
    if (!view_) moves_.leaving.clear();
    for (int i = 0; i < 1200 && error_.empty(); ++i) Step();
    if (!error_.empty()) return;
    CheckRest();
  }

  const std::string& error() const { return error_; }
  uint64_t failovers() const { return failovers_; }
  uint64_t handovers() const { return handovers_; }
  uint64_t views() const { return view_ ? view_->number : 0; }

 private:
  struct Server {
    ReplicaId id;
    bool is_up = false;
    bool is_away = false;  // stopped, or cut off from the store
    std::unique_ptr<ViewKeeper> keeper;
  };

  void Fail(const std::string& why) {
    if (error_.empty()) error_ = why;
  }

  void Start(Server* server) {
    server->id.incarnation = ++incarnations_;
    server->is_up = true;
    server->is_away = false;
    server->keeper = std::make_unique<ViewKeeper>(
        ViewKeeper::Options{server->id, backups_, absl::Seconds(1)});
  }

  Replicas Listed() const {
    Replicas listed;
    for (const Server& server : servers_) {
      if (server.is_up && !server.is_away) listed.push_back(server.id);
    }
    return listed;
  }

  // Returns true if no shard needs the server. Counts only replicas that all
  // recent lists contain, because a keeper may act on an outdated list, and
  // drop a replica that the list lacks.
  bool CanSpare(const Server& server) const {
    if (!view_) return false;
    for (const ShardReplicas& shard : view_->shards) {
      Replicas holders = shard.backups;
      holders.push_back(shard.primary);
      if (std::none_of(holders.begin(), holders.end(), [&](const auto& id) {
            return id != server.id && IsUp(id) && IsInEachList(id);
          })) {
        return false;
      }
    }
    return true;
  }

  bool IsInEachList(const ReplicaId& id) const {
    return std::all_of(lists_.begin(), lists_.end(),
                       [&](const Replicas& list) { return Has(list, id); });
  }

  bool IsUp(const ReplicaId& id) const {
    return std::any_of(servers_.begin(), servers_.end(), [&](const Server& s) {
      return s.is_up && !s.is_away && s.id == id;
    });
  }

  // Draws a new request of the operator, different from the last one.
  void DrawRequest() {
    moves_.leaving.clear();
    moves_.to_own_servers = dice_.Chance(30);
    for (const Server& server : servers_) {
      const bool is_needed =
          moves_.leaving.size() + backups_ + 1 >= servers_.size();
      if (!is_needed && server.is_up && dice_.Chance(25)) {
        moves_.leaving.push_back(server.id);
      }
    }
  }

  void Step() {
    now_ += absl::Milliseconds(20);
    Server& server = servers_[dice_.Below(servers_.size())];
    if (!is_fair_ && dice_.Chance(10)) Disturb(&server);
    if (!is_fair_ && dice_.Chance(2)) DrawRequest();
    lists_.push_back(Listed());
    if (lists_.size() > 4) lists_.pop_front();
    if (server.is_up && !server.is_away) Act(&server);
  }

  void Disturb(Server* server) {
    if (!server->is_up) return Start(server);
    if (server->is_away) {
      server->is_away = false;
    } else if (CanSpare(*server)) {
      const bool dies = dice_.Chance(50);
      server->is_up = !dies;
      server->is_away = !dies;
    }
  }

  // Returns the requests of the server's primaries.
  std::vector<ViewFollower::Request> RequestsOf(const Server& server) {
    std::vector<ViewFollower::Request> requests;
    for (uint32_t i = 0; view_ && i < view_->shards.size(); ++i) {
      const ShardReplicas& shard = view_->shards[i];
      if (shard.primary != server.id) continue;
      ViewFollower::Request request{i, view_->number, dice_.Chance(50), {}, {}};
      for (const ReplicaId& joiner : shard.joiners) {
        if (IsUp(joiner) && dice_.Chance(50))
          request.complete.push_back(joiner);
      }
      Replicas others = shard.backups;
      others.insert(others.end(), shard.joiners.begin(), shard.joiners.end());
      // Makes a primary fail, but not while its last backup is dying, which
      // would lose the shard.
      if (!is_fair_ && dice_.Chance(1) && CanSpare(server)) {
        request.overdue.push_back({server.id, "its disk is full"});
      }
      for (const ReplicaId& other : others) {
        if (is_fair_ || !dice_.Chance(2)) continue;
        request.overdue.push_back({other, "slow"});
      }
      requests.push_back(std::move(request));
    }
    return requests;
  }

  void Act(Server* server) {
    ViewKeeper::Knowledge known;
    known.view = view_;
    const size_t late = is_fair_ ? 0 : dice_.Below(lists_.size());
    known.live = lists_[lists_.size() - 1 - late];
    known.are_all_live = known.live.size() == servers_.size();
    known.sees_deaths = is_fair_ || !dice_.Chance(20);
    known.run = kRun;
    known.requests = RequestsOf(*server);
    known.moves = moves_;
    auto next = server->keeper->Next(known, now_);
    if (!next) return;
    quiet_since_ = now_;
    Check(known, *next);
    // Accepts one view of each number, as the store does, and sometimes loses a
    // proposal.
    if (dice_.Chance(90)) view_ = std::move(next);
  }

  void Check(const ViewKeeper::Knowledge& known, const View& next) {
    if (!view_) {
      if (next.number != 1 || !CheckView(next).ok()) Fail("bad first view");
      return;
    }
    const absl::Status wrong = CheckSuccessor(*view_, next);
    if (!wrong.ok()) return Fail(std::string(wrong.message()));
    std::set<std::pair<size_t, ReplicaId>> complete, overdue;
    std::set<size_t> begun;
    for (const auto& request : known.requests) {
      if (request.has_begun) begun.insert(request.shard);
      for (const auto& id : request.complete)
        complete.insert({request.shard, id});
      for (const auto& id : request.overdue) {
        overdue.insert({request.shard, id.replica});
      }
    }
    for (size_t i = 0; i < next.shards.size(); ++i) {
      const ShardReplicas& before = view_->shards[i];
      const ShardReplicas& after = next.shards[i];
      const auto is_dead = [&](const ReplicaId& id) {
        return !Has(known.live, id) &&
               (known.sees_deaths ||
                std::any_of(known.live.begin(), known.live.end(),
                            [&](const ReplicaId& live) {
                              return live.server == id.server;
                            }));
      };
      if (after.primary != before.primary) {
        const bool is_handover = Has(after.backups, before.primary);
        const bool has_failed = overdue.count({i, before.primary}) > 0;
        ++(is_handover ? handovers_ : failovers_);
        if (is_handover && !MayHandOver(i, before.primary, after.primary)) {
          Fail("a primary was deposed that nobody wants elsewhere");
        }
        if (!is_handover && !has_failed && !is_dead(before.primary)) {
          Fail("a live primary was deposed");
        }
        if (is_dead(after.primary)) Fail("a dead backup was made primary");
      }
      for (const ReplicaId& id : before.backups) {
        const bool stays = Has(after.backups, id) || after.primary == id;
        const bool is_spare = after.backups.size() >= backups_;
        if (!stays && !is_dead(id) && overdue.count({i, id}) == 0 &&
            !is_spare) {
          Fail("a good backup was dropped");
        }
        if (!stays && !is_dead(id) && overdue.count({i, id}) == 0 &&
            begun.count(i) == 0) {
          Fail("a predecessor was dropped before its successor has begun");
        }
      }
      for (const ReplicaId& id : after.joiners) {
        if (Has(moves_.leaving, id) && !Has(before.joiners, id)) {
          Fail("a server that leaves joins");
        }
      }
      for (const ReplicaId& id : after.backups) {
        if (Has(before.joiners, id) && complete.count({i, id}) == 0) {
          Fail("a joiner became a backup, and is not complete");
        }
      }
    }
  }

  bool MayHandOver(size_t shard, const ReplicaId& from,
                   const ReplicaId& to) const {
    if (Has(moves_.leaving, to)) return false;
    return Has(moves_.leaving, from) ||
           (moves_.to_own_servers && moves_.own_servers[shard] == to.server);
  }

  void CheckRest() {
    if (!view_) return Fail("there is no view");
    if (now_ - quiet_since_ < absl::Seconds(1)) Fail("views do not rest");
    for (const ShardReplicas& shard : view_->shards) {
      if (!IsUp(shard.primary)) Fail("a shard has no primary");
      if (shard.backups.size() != backups_ || !shard.joiners.empty()) {
        Fail(absl::StrCat("a shard has ", shard.backups.size(), " backups of ",
                          backups_));
      }
      for (const ReplicaId& id : shard.backups) {
        if (!IsUp(id)) Fail("a dead backup is left");
      }
      for (const ReplicaId& id : moves_.leaving) {
        if (IsInShard(shard, id)) Fail("a server that leaves has a replica");
      }
    }
    for (size_t i = 0; moves_.to_own_servers && i < servers_.size(); ++i) {
      const ReplicaId& own = servers_[i].id;
      const bool is_there = view_->shards[i].primary == own;
      if (!is_there && !Has(moves_.leaving, own)) {
        Fail("a shard is not at its own server");
      }
    }
  }

  Dice dice_;
  size_t backups_ = 0;
  std::vector<Server> servers_;
  std::deque<Replicas> lists_;
  absl::optional<View> view_;
  uint64_t incarnations_ = 100;
  uint64_t failovers_ = 0;
  uint64_t handovers_ = 0;
  MoveRequests moves_;
  bool is_fair_ = false;
  absl::Time now_ = absl::UnixEpoch();
  absl::Time quiet_since_ = absl::UnixEpoch();
  std::string error_;
};

TEST(ViewKeeperSimulation, MakesGoodViews) {
  Seeds& seeds = ChosenSeeds();
  uint64_t failovers = 0;
  uint64_t handovers = 0;
  uint64_t views = 0;
  for (uint64_t seed = seeds.first(); seeds.Wants(seed); ++seed) {
    World world(seed);
    world.Run();
    ASSERT_EQ(world.error(), "") << RepeatWith(seed);
    failovers += world.failovers();
    handovers += world.handovers();
    views += world.views();
  }
  seeds.Print();
  if (seeds.ran() < 100) return;
  EXPECT_GT(failovers, seeds.ran() / 10);
  EXPECT_GT(handovers, seeds.ran() / 10);
  EXPECT_GT(views, seeds.ran() * 5);
}

}  // namespace
}  // namespace penstock::ps::replication

int main(int argc, char** argv) {
  return penstock::ps::RunWithSeeds(argc, argv, 300);
}
