// Tests that ps_server looks into the folder of checkpoints when it starts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ps/client/checkpoint.h"
#include "ps/client/worker.h"
#include "tests/process/child.h"
#include "tests/ps/checkpoint/test_folder.h"
#include "tests/ps/only_worker.h"

namespace penstock::ps {
namespace {

using process::Child;
using testing::HasSubstr;

std::unique_ptr<Child> Start(const std::string& folder,
                             const std::vector<std::string>& flags) {
  std::vector<std::string> command = {"ps/ps_server", "--listen=127.0.0.1:0",
                                      "--workers=1",
                                      absl::StrCat("--checkpoints=", folder)};
  command.insert(command.end(), flags.begin(), flags.end());
  return Child::Start(command);
}

// Trains for one step, and writes a checkpoint.
void WriteCheckpoint(const std::string& folder) {
  const auto server = Start(folder, {});
  ASSERT_NE(server, nullptr);
  const auto port = server->Find("port ");
  ASSERT_TRUE(port.has_value());
  TableSpec table;
  table.name = "rows";
  SparseSpec rows;
  rows.dim = 1;
  table.rows = rows;
  const auto joined = JoinAlone(*port, {{table}});
  ASSERT_TRUE(joined.ok()) << joined.status();
  StepGradients gradients;
  gradients.rows = {{"rows", {1}, *tensor::Tensor::Of<float>({1, 1}, {1})}};
  ASSERT_TRUE(joined->worker->Push(0, gradients).ok());
  ASSERT_TRUE(joined->worker->Pull(1).ok());
  const auto taken = TakeCheckpoint(*joined->defined.connection, {});
  ASSERT_TRUE(taken.ok()) << taken.status();
}

TEST(UsedFolderProcessTest, ATrainingThatWouldWriteNothingDoesNotStart) {
  const checkpoint::TestFolder folder;
  ASSERT_NO_FATAL_FAILURE(WriteCheckpoint(folder.name()));
  const auto refused = Start(folder.name(), {"--checkpoint-every=600"});
  ASSERT_NE(refused, nullptr);
  const std::string said = refused->ReadAll();
  EXPECT_THAT(said, HasSubstr("--restore=newest"));
  EXPECT_THAT(said, HasSubstr("another folder with --checkpoints"));
  EXPECT_EQ(refused->Finish(), 1);
  const auto restored =
      Start(folder.name(), {"--checkpoint-every=600", "--restore=newest"});
  ASSERT_NE(restored, nullptr);
  EXPECT_TRUE(restored->Find("port ").has_value());
}

TEST(UsedFolderProcessTest, AStepThatTheFolderLacksIsRefused) {
  const checkpoint::TestFolder folder;
  const auto refused = Start(folder.name(), {"--restore=7"});
  ASSERT_NE(refused, nullptr);
  const std::string said = refused->ReadAll();
  EXPECT_THAT(said,
              HasSubstr("expected step-0000000007; found no checkpoint in " +
                        folder.name()));
  EXPECT_THAT(said, HasSubstr("--restore=newest"));
  EXPECT_EQ(refused->Finish(), 1);
}

}  // namespace
}  // namespace penstock::ps
