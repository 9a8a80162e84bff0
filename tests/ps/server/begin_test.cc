// Tests the beginning of a training: permissions to define and initialize, and
// the state after a failed restore.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "ps/server/server.h"
#include "tests/ps/server/small_server.h"

namespace penstock::ps {
namespace {

using absl::StatusCode;
using ::testing::ElementsAre;

constexpr View kView = SmallServer::kView;
constexpr WorkerId kChief = {0, 11};
constexpr WorkerId kNextChief = {0, 12};

// A source that restores the first part with zeros, and then finds damage.
class HalfSource final : public RestoreSource {
 public:
  absl::StatusOr<absl::optional<CutId>> Choose(bool verifies) override {
    choices_.push_back(verifies);
    return absl::make_optional(CutId{5, 17, 0, {}});
  }
  absl::Status Check(const absl::optional<CutId>&) override {
    return absl::OkStatus();
  }
  absl::StatusOr<RestoredModel> Restore(const CutId&, Tables* tables) override {
    auto room = *tables->dense().MakeRoom(0);
    std::memset(room.value.buffer()->mutable_data(), 0, room.value.byte_size());
    EXPECT_TRUE(tables->dense().Restore(0, std::move(room)).ok());
    return absl::DataLossError("damaged");
  }
  // Returns the results of the choices of a cut. A result is true if the
  // checkpoint was verified.
  const std::vector<bool>& choices() const { return choices_; }

 private:
  std::vector<bool> choices_;
};

Server::Options RestoresHalf() {
  Server::Options options;
  options.restore = std::make_shared<HalfSource>();
  return options;
}

Model TwoParts() {
  return {{DenseTable("v", {2}),
           DenseTable("w", {2}, ConsistencyPolicy::kUnlimited)}};
}

// Tests that a cut for a lost run is verified, because the servers may drop
// trained values for it.
TEST(BeginTest, CutForALostRunIsVerified) {
  const auto source = std::make_shared<HalfSource>();
  Server::Options options;
  options.restore = source;
  SmallServer server(options);
  ASSERT_TRUE(server->ChooseCut(kView.run).ok());
  ASSERT_TRUE(server->ChooseCut(kView.run).ok());
  EXPECT_THAT(source->choices(), ElementsAre(false));
  const auto verified = server->ChooseCut(kView.run + 2, kView.run + 1);
  ASSERT_TRUE(verified.ok());
  EXPECT_EQ(verified->run, kView.run);
  ASSERT_TRUE(server->ChooseCut(kView.run + 3, kView.run + 1).ok());
  EXPECT_THAT(source->choices(), ElementsAre(false, true));
}

TEST(BeginTest, HalfOfARestoreIsThrownAway) {
  SmallServer server(RestoresHalf());
  Server::Definition definition = SmallServer::Definition(TwoParts());
  definition.cut = server->ChooseCut(kView.run)->cut;
  ASSERT_TRUE(absl::IsDataLoss(server->Define(definition).status()));
  const auto defined = server.Define(TwoParts());
  ASSERT_TRUE(defined.ok()) << defined.status();
  EXPECT_TRUE(defined->wants_values);
  ASSERT_TRUE(
      server
          ->Initialize(kView, kChief,
                       {{Floats("v", {2}, {1, 2}), Floats("w", {2}, {3, 4})}})
          .ok());
  const auto pulled = server.Pull(absl::nullopt, 0);
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_THAT(ElementsOf(pulled->bundle.tensors[0].tensor), ElementsAre(1, 2));
  EXPECT_THAT(ElementsOf(pulled->bundle.tensors[1].tensor), ElementsAre(3, 4));
}

TEST(BeginTest, RestoreThatFailsLeavesTheServerWithoutAModel) {
  SmallServer server(RestoresHalf());
  Server::Definition definition = SmallServer::Definition(TwoParts());
  definition.cut = CutId{5, 17, 0, {}};
  EXPECT_EQ(server->Define(definition).status().code(), StatusCode::kDataLoss);
  EXPECT_EQ(server->training(), nullptr);
}

TEST(BeginTest, ChiefThatWasSupersededDoesNotInitialise) {
  SmallServer server;
  ASSERT_TRUE(server.Define(TwoParts()).ok());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  ASSERT_TRUE(server->Join(kView, kNextChief).ok());
  const tensor::Bundle value = {{Floats("v", {2}, {1, 2})}};
  EXPECT_EQ(server->Initialize(kView, kChief, value).status().code(),
            StatusCode::kAborted);
  EXPECT_TRUE(server->Initialize(kView, kNextChief, value).ok());
}

TEST(BeginTest, OneOfChiefsThatDefineAtOnceGivesTheRun) {
  for (int round = 0; round < 20; ++round) {
    SmallServer server;
    std::vector<absl::StatusOr<Server::Defined>> defined(4);
    std::vector<std::thread> chiefs;
    for (size_t i = 0; i < defined.size(); ++i) {
      chiefs.emplace_back([&, i] {
        Server::Definition definition = SmallServer::Definition(TwoParts());
        definition.run = 100 + i;
        defined[i] = server->Define(definition);
      });
    }
    for (std::thread& chief : chiefs) chief.join();
    size_t taken = 0;
    for (size_t i = 0; i < defined.size(); ++i) {
      ASSERT_TRUE(defined[i].ok()) << defined[i].status();
      EXPECT_EQ(defined[i]->run, server->training()->run);
      EXPECT_EQ(defined[i]->taken, server->training()->run == 100 + i);
      taken += defined[i]->taken ? 1 : 0;
    }
    EXPECT_EQ(taken, 1u);
  }
}

// Tests a server that holds no part of the model. The worker still pushes to
// this server.
TEST(BeginTest, ServerWithNothingDoesNotHoldBackAnAsynchronousWorker) {
  Server::Options options;
  options.membership.expected_workers = 2;
  SmallServer server(options);
  Server::Definition definition = SmallServer::Definition(
      {{DenseTable("w", {2}, ConsistencyPolicy::kUnlimited)}});
  definition.servers = {"ps0:2222", "ps1:2222"};
  definition.server = 1;
  ASSERT_TRUE(server->Define(definition).ok());
  ASSERT_TRUE(server->training()->tables->parts().empty());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  ASSERT_TRUE(server->Join(kView, WorkerId{1, 12}).ok());
  for (uint64_t clock = 0; clock < 3; ++clock) {
    const auto pushed = server.Push(kChief, clock, {});
    ASSERT_TRUE(pushed.ok()) << pushed.status();
    EXPECT_EQ(*pushed, Server::PushVerdict::kCounted);
  }
  EXPECT_TRUE(server.Pull(kChief, 3).ok());
}

TEST(BeginTest, IdsMayBeAnyNumberAndRepeat) {
  SmallServer server;
  ASSERT_TRUE(server.Define({{SparseTable("e", 1)}}).ok());
  ASSERT_TRUE(server->Join(kView, kChief).ok());
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> ids = {-1, 0, kLeast, -1, kMost, 1, -1};
  ASSERT_TRUE(
      server
          .Push(kChief, 0,
                {{Ids("e", ids), Floats("e", {7, 1}, {1, 2, 3, 4, 5, 6, 7})}})
          .ok());
  const auto pulled =
      server.Pull(kChief, 1, {{Ids("e", {1, 0, -1, kLeast, kMost})}});
  ASSERT_TRUE(pulled.ok()) << pulled.status();
  EXPECT_THAT(ElementsOf(pulled->bundle.tensors[0].tensor),
              ElementsAre(-6, -2, -12, -3, -5));
}

}  // namespace
}  // namespace penstock::ps
