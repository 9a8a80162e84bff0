// Tests the limit of shared memory of ps_server as a process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ps/client/worker.h"
#include "tensor_service/tensor.h"
#include "tests/process/child.h"
#include "tests/ps/only_worker.h"

namespace penstock::ps {
namespace {

using process::Child;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kElements = 6 << 20;  // 24 MiB

// Returns the log of a server with these settings, after a table has got its
// first value.
std::string LogOfServerWith(const std::vector<std::string>& settings) {
  const auto server = Child::Start(
      {"ps/ps_server", "--listen=127.0.0.1:0", "--workers=1"}, settings);
  const auto port = server == nullptr ? absl::nullopt : server->Find("port ");
  if (!port.has_value()) return "the server has not started";
  TableSpec table;
  table.name = "w";
  table.rows = DenseSpec{tensor::DType::kF32, {kElements}};
  const auto joined = JoinAlone(*port, {{table}});
  EXPECT_TRUE(joined.ok()) << joined.status();
  if (!joined.ok()) return "";
  const auto value =
      *tensor::Tensor::Of<float>({kElements}, std::vector<float>(kElements, 1));
  const absl::Status taken = joined->worker->Initialize({{{"w", value}}});
  EXPECT_TRUE(taken.ok()) << taken;
  kill(server->pid(), SIGTERM);
  return server->ReadAll();
}

TEST(ArenaProcessTest, ALineSaysThatALargerArenaWouldHelp) {
  const std::string log = LogOfServerWith({"PENSTOCK_SHM_ARENA_MIB=16"});
  EXPECT_THAT(log, HasSubstr("memory shared with workers on this host: up to "
                             "16 MiB, as PENSTOCK_SHM_ARENA_MIB says"));
  EXPECT_THAT(log, HasSubstr("24 MiB have no room in the memory that is "
                             "shared with workers on this host"));
  EXPECT_THAT(log, HasSubstr("A larger PENSTOCK_SHM_ARENA_MIB"));
}

TEST(ArenaProcessTest, TheDefaultFollowsTheModel) {
  const std::string log = LogOfServerWith({});
  EXPECT_THAT(log, HasSubstr("memory shared with workers on this host: up to"));
  EXPECT_THAT(log, HasSubstr(" and twice the 24 MiB of dense values"));
  EXPECT_THAT(log, HasSubstr("stopped at version 0"));
  EXPECT_THAT(log, Not(HasSubstr("have no room")));
}

}  // namespace
}  // namespace penstock::ps
