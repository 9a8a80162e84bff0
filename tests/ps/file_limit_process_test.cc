// Tests ps_server under `ulimit -f`. A checkpoint that needs a larger file
// fails, the error names the remedy, and the server continues.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/client/checkpoint.h"
#include "ps/client/worker.h"
#include "tests/process/child.h"
#include "tests/ps/only_worker.h"

namespace penstock::ps {
namespace {

using process::Child;
using tensor::Tensor;

TEST(FileLimitProcessTest, ACheckpointFailsAndTheServerGoesOn) {
  const std::string folder = testing::TempDir() + "/checkpoints";
  ASSERT_EQ(mkdir(folder.c_str(), 0700), 0);
  const auto server = Child::Start(
      {"/bin/sh", "-c",
       absl::StrCat("ulimit -f 64; exec ps/ps_server --listen=127.0.0.1:0 "
                    "--workers=1 --checkpoints=",
                    folder)});
  ASSERT_NE(server, nullptr);
  const auto port = server->Find("port ");
  ASSERT_TRUE(port.has_value());
  TableSpec table;
  table.name = "w";
  table.rows = DenseSpec{tensor::DType::kF32, {1 << 16}};
  table.optimizer.rule = optim::Rule::kSgd;
  const auto joined = JoinAlone(*port, {{table}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  const Tensor ones =
      *Tensor::Of<float>({1 << 16}, std::vector<float>(1 << 16, 1));
  const tensor::Bundle bundle{{{"w", ones}}};
  ASSERT_TRUE(joined->worker->Initialize(bundle).ok());
  for (uint64_t step = 0; step < 2; ++step) {
    const auto pushed = joined->worker->Push(step, {bundle, {}});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    const auto taken = TakeCheckpoint(*joined->defined.connection, {});
    EXPECT_TRUE(absl::IsResourceExhausted(taken.status())) << taken.status();
    EXPECT_THAT(taken.status().message(), testing::HasSubstr("ulimit -f"));
  }
  EXPECT_TRUE(joined->worker->Pull(2).ok());
  joined->worker->Leave();
}

}  // namespace
}  // namespace penstock::ps
