// Tests snapshots whose cut the server itself chooses, as it does for a replica
// that joins.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

constexpr View kView = SmallServer::kView;

// Defines server `number` of two. Returns its only table.
std::string Define(SmallServer* server, uint32_t number) {
  Server::Definition definition = SmallServer::Definition(
      {{DenseTable("steps", {2}),
        DenseTable("pushes", {2}, ConsistencyPolicy::kUnlimited)}});
  definition.servers = {"ps0:2222", "ps1:2222"};
  definition.server = number;
  EXPECT_TRUE((*server)->Define(definition).ok());
  const auto training = (*server)->training();
  EXPECT_EQ(training->tables->parts().size(), 1u);
  return training->tables->parts().front().name;
}

// Tests servers of which one has no synchronous table. One worker has begun a
// step that the other worker has not.
TEST(OwnCutTest, NoServerWaitsForTheOtherWorker) {
  for (const uint32_t number : {0, 1}) {
    Server::Options options;
    options.membership.expected_workers = 2;
    SmallServer server(options);
    const std::string table = Define(&server, number);
    ASSERT_TRUE(server->Join(kView, {0, 1}).ok());
    ASSERT_TRUE(server->Join(kView, {1, 1}).ok());
    ASSERT_TRUE(
        server->Initialize(kView, {0, 1}, {{Floats(table, {2}, {0, 0})}}).ok());
    // Counts the pushes of the cut: the first push is applied before the second
    // one is accepted.
    const uint64_t pushes = table == "pushes" ? 2 : 1;
    for (uint64_t clock = 0; clock < pushes; ++clock) {
      ASSERT_TRUE(
          server.Push({0, 1}, clock, {{Floats(table, {2}, {1, 1})}}).ok());
    }
    const auto snapshot =
        server->TakeSnapshot(kView, {}, {}, absl::Seconds(10));
    EXPECT_TRUE(snapshot.ok()) << table << ": " << snapshot.status();
  }
}

}  // namespace
}  // namespace penstock::ps
