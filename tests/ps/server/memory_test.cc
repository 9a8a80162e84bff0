// Tests steps that find no memory, and are retried until a time limit. Also
// tests values that readers keep, which must not use up the memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "ps/server/server.h"
#include "tensor_service/allocator.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr View kView = SmallServer::kView;
constexpr WorkerId kChief = {0, 11};

class SmallMemory final : public tensor::Allocator {
 public:
  absl::StatusOr<std::shared_ptr<tensor::Buffer>> Allocate(
      size_t bytes) override {
    if (!is_full_) return tensor::HeapAllocator()->Allocate(bytes);
    if (!was_asked_.HasBeenNotified()) was_asked_.Notify();
    return absl::ResourceExhaustedError("no memory");
  }

  void SetFull(bool is_full) { is_full_ = is_full; }
  // Waits until the applying thread asks for memory while there is none.
  void WaitUntilAsked() { was_asked_.WaitForNotification(); }

 private:
  std::atomic<bool> is_full_{false};
  absl::Notification was_asked_;
};

class MemoryTest : public testing::Test {
 protected:
  // Begins a training of one worker whose first push finds no memory.
  void PushWithoutMemory(absl::Duration max_wait) {
    Server::Options options;
    options.membership.expected_workers = 1;
    options.max_wait = max_wait;
    options.tables.allocator = &memory_;
    server_ = std::make_unique<SmallServer>(options);
    ASSERT_TRUE(server_->Define({{DenseTable("w", {2})}}).ok());
    ASSERT_TRUE((*server_)->Join(kView, kChief).ok());
    ASSERT_TRUE((*server_)
                    ->Initialize(kView, kChief, {{Floats("w", {2}, {10, 20})}})
                    .ok());
    memory_.SetFull(true);
    ASSERT_TRUE(server_->Push(kChief, 0, {{Floats("w", {2}, {1, 2})}}).ok());
    memory_.WaitUntilAsked();
  }

  SmallMemory memory_;
  std::unique_ptr<SmallServer> server_;
};

TEST_F(MemoryTest, AStepWaitsForMemory) {
  ASSERT_NO_FATAL_FAILURE(PushWithoutMemory(absl::Minutes(10)));
  memory_.SetFull(false);
  const auto pulled = server_->Pull(kChief, 1);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_THAT(ElementsOf(pulled->bundle.tensors[0].tensor), ElementsAre(9, 18));
}

// Tests a lack of memory that lasts too long. A client would retry
// RESOURCE_EXHAUSTED until its own time limit.
TEST_F(MemoryTest, WithoutMemoryForTooLongTheTrainingEndsForAll) {
  ASSERT_NO_FATAL_FAILURE(PushWithoutMemory(absl::Milliseconds(200)));
  // Waits for a step that never comes.
  const auto snapshot = (*server_)->TakeSnapshot(kView, CutPoint::OfVersion(1),
                                                 {}, absl::Minutes(10));
  EXPECT_EQ(snapshot.status().code(), absl::StatusCode::kAborted)
      << snapshot.status();
  memory_.SetFull(false);
  for (const absl::Status& ended : {server_->Pull(kChief, 1).status(),
                                    server_->Push(kChief, 1, {}).status(),
                                    (*server_)->Join(kView, kChief).status(),
                                    (*server_)->Heartbeat(kView.run, kChief)}) {
    EXPECT_EQ(ended.code(), absl::StatusCode::kAborted) << ended;
    EXPECT_THAT(std::string(ended.message()),
                AllOf(HasSubstr("training has ended: step 0"),
                      HasSubstr("variable w"), HasSubstr("no memory")));
  }
}

// Tests a limit with room for the variable's 8 bytes and for the next version.
// Readers may keep as many bytes of older versions in addition.
TEST(VersionsTest, ReadersThatKeepThemGetNoMoreThanThereIsMemoryFor) {
  Server::Options options;
  options.membership.expected_workers = 1;
  options.tables.max_dense_bytes = 16;
  SmallServer server(options);
  ASSERT_TRUE(server.Define({{DenseTable("w", {2})}}).ok());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  ASSERT_TRUE(
      server->Initialize(kView, kChief, {{Floats("w", {2}, {0, 0})}}).ok());
  std::vector<Server::Pulled> kept;
  absl::Status refused;
  uint64_t step = 0;
  for (; refused.ok() && step < 10; ++step) {
    auto pulled = server.Pull(kChief, step);
    refused = pulled.status();
    if (pulled.ok()) kept.push_back(*std::move(pulled));
    ASSERT_TRUE(server.Push(kChief, step, {{Floats("w", {2}, {1, 1})}}).ok());
  }
  EXPECT_EQ(kept.size(), 4u);
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted) << refused;
  EXPECT_THAT(std::string(refused.message()),
              AllOf(HasSubstr("pulled values"), HasSubstr("--memory")));
  // Continues the training without readers. This pull requests no values.
  for (; step < 20; ++step) {
    Server::PullSpec step_is_there;
    step_is_there.clock = step;
    Answer<Server::Pulled> answer;
    server->Pull(kView, step_is_there, answer.callback());
    ASSERT_TRUE(answer.Wait().ok());
    ASSERT_TRUE(server.Push(kChief, step, {{Floats("w", {2}, {1, 1})}}).ok());
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(ElementsOf(kept[i].bundle.tensors[0].tensor)[0], -1.0 * i);
  }
  EXPECT_LE(server->report().tables[0].bytes, 48u);
  // Releases the versions. The server must notice this even if no further step
  // comes.
  kept.clear();
  const auto pulled = server.Pull(kChief, step);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_EQ(ElementsOf(pulled->bundle.tensors[0].tensor)[0], -1.0 * step);
}

}  // namespace
}  // namespace penstock::ps
