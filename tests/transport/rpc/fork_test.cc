// Tests clients in a forked child.

#include <sys/wait.h>
#include <unistd.h>

#include "tests/transport/rpc/rpc_fixture.h"

namespace penstock {
namespace rpc {
namespace {

class ForkTest : public RpcFixture {};

// Tests that a child does not use the parent's connection. The child would
// write into the parent's stream.
TEST_P(ForkTest, ChildGivesUpItsParentsConnection) {
  ServeEcho();
  Client::Options options = ClientOptions();
  options.polling = progress::PollingMode::kEvent;
  const std::unique_ptr<Client> client = Connect(options);
  ASSERT_TRUE(Call(client.get(), Named("before")).ok());
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const Result result = Call(client.get(), Named("child"));
    _exit(absl::IsUnavailable(result.status()) ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  const Result after = Call(client.get(), Named("after"));
  ASSERT_TRUE(after.ok()) << after.status();
  EXPECT_EQ(after->metadata, "after ");
}

INSTANTIATE_TEST_SUITE_P(Fabrics, ForkTest,
                         testing::Values(Fabric::kShm, Fabric::kTcp));

}  // namespace
}  // namespace rpc
}  // namespace penstock
