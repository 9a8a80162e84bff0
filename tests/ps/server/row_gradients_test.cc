// Tests how long a push of rows keeps memory: until the push is applied.

#include <gtest/gtest.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tensor_service/buffer.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

constexpr WorkerId kChief = {0, 11};
constexpr WorkerId kOther = {1, 12};
constexpr size_t kMessageBytes = 10'000;

// A training of two workers. The server holds the first worker's push until the
// second worker has pushed.
class RowGradientsTest : public testing::Test {
 protected:
  RowGradientsTest() : server_(ForTwo()) {
    EXPECT_TRUE(server_.Define({{SparseTable("e", 2)}}).ok());
    EXPECT_TRUE(server_->Join(SmallServer::kView, kChief).ok());
    EXPECT_TRUE(server_->Join(SmallServer::kView, kOther).ok());
  }

  static Server::Options ForTwo() {
    Server::Options options;
    options.membership.expected_workers = 2;
    return options;
  }

  // Returns rows in the memory of a message. Notifies `gone_` when the message
  // is freed.
  tensor::NamedTensor Received(const std::vector<float>& values) {
    const std::shared_ptr<std::vector<float>> message(
        new std::vector<float>(values), [this](std::vector<float>* held) {
          delete held;
          gone_.Notify();
        });
    const size_t bytes = values.size() * sizeof(float);
    return {"e", *tensor::Tensor::FromBuffer(
                     tensor::DType::kF32,
                     {static_cast<int64_t>(values.size() / 2), 2},
                     tensor::Buffer::Share(message->data(), bytes, message,
                                           kMessageBytes))};
  }

  void Push(const WorkerId& worker, tensor::Bundle bundle) {
    const auto pushed = server_.Push(worker, 0, std::move(bundle));
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_EQ(*pushed, Server::PushVerdict::kCounted);
  }

  std::vector<float> Rows(const std::vector<int64_t>& ids) {
    const auto pulled = server_.Pull(kChief, 1, {{Ids("e", ids)}});
    EXPECT_TRUE(pulled.ok()) << pulled.status();
    return ElementsOf(pulled->bundle.tensors[0].tensor);
  }

  absl::Notification gone_;
  SmallServer server_;
};

TEST_F(RowGradientsTest, RowsStayWhereTheyWereReceivedAndHoldItAll) {
  Push(kChief, {{Ids("e", {5, 6}), Received({1, 2, 3, 4})}});
  EXPECT_FALSE(gone_.HasBeenNotified());
  EXPECT_EQ(server_->report().held_bytes, kMessageBytes + 2 * sizeof(uint64_t));
  Push(kOther, {{Ids("e", {6}), Floats("e", {1, 2}, {1, 1})}});
  EXPECT_EQ(Rows({5, 6}), (std::vector<float>{-0.5, -1, -2, -2.5}));
  // Waits, because the pull may be answered before the message is freed.
  EXPECT_TRUE(gone_.WaitForNotificationWithTimeout(absl::Seconds(20)));
  EXPECT_EQ(server_->report().held_bytes, 0u);
}

TEST_F(RowGradientsTest, RowsThatAreAddedUpLetGoOfTheMessage) {
  Push(kChief, {{Ids("e", {5, 6, 5}), Received({1, 2, 3, 4, 5, 6})}});
  EXPECT_TRUE(gone_.HasBeenNotified());
  EXPECT_EQ(server_->report().held_bytes,
            2 * (2 * sizeof(float) + sizeof(uint64_t)));
  Push(kOther, {});
  EXPECT_EQ(Rows({5, 6}), (std::vector<float>{-6, -8, -3, -4}));
}

}  // namespace
}  // namespace penstock::ps
