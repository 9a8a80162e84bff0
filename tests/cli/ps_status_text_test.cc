// Tests the tables in the output of `penstock ps status`.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/ps/status_view.h"
#include "cli/text/output.h"

namespace penstock::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// Returns two servers. All spilled rows are at one of them.
std::vector<ServerStatus> Servers(uint64_t spilled_rows) {
  std::vector<ServerStatus> servers(2);
  for (ServerStatus& server : servers) {
    server.report.set_run(7);
    ps::v1::TableReport* const table = server.report.add_tables();
    table->set_name("words");
    table->set_sparse(true);
    table->set_rows(1000);
  }
  servers[0].report.mutable_tables(0)->set_spilled_rows(spilled_rows);
  return servers;
}

TEST(StatusTextTest, ThePartOfTheRowsThatIsOnDiskIsShown) {
  const std::string text = StatusText(Servers(750), Output(-1, Display()));
  EXPECT_THAT(text, HasSubstr("evicted on disk\n"));
  EXPECT_THAT(text, HasSubstr("     38%\n"));
}

TEST(StatusTextTest, WhereNoRowsAreOnDiskThatIsNoColumn) {
  EXPECT_THAT(StatusText(Servers(0), Output(-1, Display())),
              Not(HasSubstr("on disk")));
}

TEST(StatusTextTest, CheckpointsThatWereSetAsideAreCounted) {
  std::vector<ServerStatus> servers = Servers(0);
  EXPECT_THAT(StatusText(servers, Output(-1, Display())),
              Not(HasSubstr("aside")));
  servers[0].report.set_aside_checkpoints(2);
  servers[0].report.set_aside_checkpoints_bytes(3 << 20);
  EXPECT_THAT(StatusText(servers, Output(-1, Display())),
              AllOf(HasSubstr("set 2 checkpoints aside, with 3 MiB. When"),
                    HasSubstr(":\n  rm -r DIR/aside-*\n")));
}

TEST(StatusTextTest, ReplicasAreShownAndMissingOnesAreProblems) {
  std::vector<ServerStatus> servers = Servers(0);
  EXPECT_THAT(StatusText(servers, Output(-1, Display())),
              Not(HasSubstr("Replicas")));
  ps::v1::GetViewReply* const old = servers[0].report.mutable_view();
  old->set_replicas(1);
  old->mutable_view()->set_number(4);
  ps::v1::GetViewReply* const newest = servers[1].report.mutable_view();
  newest->set_replicas(1);
  newest->mutable_view()->set_number(5);
  for (int i = 0; i < 3; ++i) {
    ps::v1::ShardReplicas* const shard = newest->mutable_view()->add_shards();
    shard->mutable_primary()->set_server("ps0:1");
  }
  newest->mutable_view()->mutable_shards(0)->add_backups()->set_server("ps1:1");
  newest->mutable_view()->mutable_shards(1)->add_joiners()->set_server("ps2:1");
  newest->add_lost_shards(2);
  const std::string text = StatusText(servers, Output(-1, Display()));
  EXPECT_THAT(text, HasSubstr("Replicas, view 5\n"));
  EXPECT_THAT(text, HasSubstr("0 ps0:1                      ps1:1"));
  EXPECT_THAT(
      ReplicaProblems(servers),
      testing::ElementsAre(
          HasSubstr("shard 2 is lost"),
          "shard 1 has 0 of 1 backups; ps2:1 catches up",
          "shard 2 has 0 of 1 backups: start the server that is missing"));
  EXPECT_THAT(StatusJson(servers),
              AllOf(HasSubstr("\"number\": 5"), HasSubstr("\"ps2:1\"")));
}

TEST(StatusTextTest, AReasonWhyServersDoNotFollowEtcdIsOneProblem) {
  std::vector<ServerStatus> servers = Servers(0);
  for (ServerStatus& server : servers) {
    server.name = "ps0:1";
    server.report.set_server(static_cast<uint32_t>(&server - servers.data()));
    server.report.mutable_view()->set_etcd_failure("etcd was wiped");
  }
  EXPECT_THAT(
      AllProblems(servers),
      testing::ElementsAre(AllOf(HasSubstr("ps0:1 answers, and does not"),
                                 HasSubstr(". etcd was wiped"))));
}

}  // namespace
}  // namespace penstock::cli
