// Snapshots whose cut the server chooses, as for a replica that joins.

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

// A worker has begun a step that the other one has not. Only the other server
// has a table of steps.
TEST(OwnCutTest, AServerWithoutStepsWaitsForNoWorker) {
  for (const uint32_t number : {0, 1}) {
    Server::Options options;
    options.membership.expected_workers = 2;
    SmallServer server(options);
    const std::string table = Define(&server, number);
    ASSERT_TRUE(server->Join(kView, {0, 1}).ok());
    ASSERT_TRUE(server->Join(kView, {1, 1}).ok());
    ASSERT_TRUE(
        server->Initialize(kView, {0, 1}, {{Floats(table, {2}, {0, 0})}}).ok());
    ASSERT_TRUE(server.Push({0, 1}, 0, {{Floats(table, {2}, {1, 1})}}).ok());
    const bool has_steps = table == "steps";
    const auto snapshot = server->TakeSnapshot(
        kView, {}, {}, has_steps ? absl::Milliseconds(1) : absl::Seconds(60));
    EXPECT_EQ(snapshot.ok(), !has_steps) << snapshot.status();
  }
}

}  // namespace
}  // namespace penstock::ps
