#include "frameworks/torch/rendezvous.h"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "collectives/reduction/reduction.h"
#include "frameworks/torch/place.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tensor_service/dtype.h"
#include "tests/frameworks/torch/memory_board.h"

namespace penstock {
namespace pytorch {
namespace {

using testing::HasSubstr;

collectives::HostGroupOptions OptionsFor(int ranks) {
  collectives::HostGroupOptions options;
  options.ranks = ranks;
  return options;
}

// Forms a group in which rank 1 has a different place. Returns the error texts
// of the ranks.
std::vector<std::string> Complaints(const Place& place_of_rank_1) {
  MemoryBoard board;
  std::vector<std::string> messages(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      const Place place = rank == 1 ? place_of_rank_1 : PlaceOn("a");
      messages[rank] =
          FormGroup(&board, place, rank, OptionsFor(3)).status().ToString();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
}

// Adds up the ranks' numbers.
void ExpectWorks(const FormedGroup& formed) {
  const int rank = formed.group->rank();
  const int ranks = formed.group->ranks();
  int64_t sum = rank;
  EXPECT_EQ(formed.group->AllReduce(collectives::ReduceOp::kSum,
                                    tensor::DType::kInt64, &sum, &sum, 1),
            absl::OkStatus());
  EXPECT_EQ(sum, ranks * (ranks - 1) / 2);
}

TEST(RendezvousTest, RanksMeet) {
  for (const int ranks : {1, 2, 4}) {
    RunRanks(ranks, [&](collectives::Group* group) {
      EXPECT_EQ(group->ranks(), ranks);
      EXPECT_EQ(group->Barrier(), absl::OkStatus());
    });
  }
}

TEST(RendezvousTest, RanksMeetAgainOnTheSameBoard) {
  MemoryBoard board;
  const auto meet = [&](int rank) {
    auto group = FormGroup(&board, PlaceOn("a"), rank, OptionsFor(2));
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ(group->group->Barrier(), absl::OkStatus());
  };
  for (int i = 0; i < 3; ++i) {
    // Starts rank 1 first, so that it finds the entries of the previous group.
    absl::Notification came;
    std::thread other([&] {
      came.Notify();
      meet(1);
    });
    came.WaitForNotification();
    meet(0);
    other.join();
  }
}

TEST(RendezvousTest, RanksOfSeveralHostsMeet) {
  for (const auto& hosts : {std::vector<std::string>{"a", "b"},
                            {"a", "a", "b", "b"},
                            {"a", "b", "a", "c"},
                            {"", ""}}) {
    std::vector<Place> places;
    for (const std::string& host : hosts) places.push_back(PlaceOn(host));
    RunRanksAt(places, &ExpectWorks);
  }
}

TEST(RendezvousTest, AllRanksLearnWhichRankHasNoAddress) {
  Place place = PlaceOn("b");
  place.own_address = "";
  for (const std::string& message : Complaints(place)) {
    EXPECT_THAT(message, HasSubstr("rank 1 (on name of b)"));
    EXPECT_THAT(message, HasSubstr("set GLOO_SOCKET_IFNAME"));
  }
}

TEST(RendezvousTest, AllRanksLearnWhichRankCannotListen) {
  Place place = PlaceOn("b");
  place.own_address = "192.0.2.1";  // documentation only, so nobody has it
  for (const std::string& message : Complaints(place)) {
    EXPECT_THAT(message, HasSubstr("cannot listen at 192.0.2.1"));
  }
}

TEST(RendezvousTest, ARankThatDoesNotComeIsNamed) {
  MemoryBoard board;
  collectives::HostGroupOptions options = OptionsFor(2);
  options.timeout = absl::Milliseconds(1);
  const auto group = FormGroup(&board, PlaceOn("a"), 0, options);
  EXPECT_EQ(group.status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(std::string(group.status().message()),
              HasSubstr("rank 1 has not come"));
}

TEST(RendezvousTest, ABoardThatFailsIsAnError) {
  class Broken final : public Board {
    absl::Status Set(const std::string&, const std::string&) override {
      return absl::UnavailableError("the Store is gone");
    }
    absl::StatusOr<int64_t> Count(const std::string&) override { return 1; }
    absl::StatusOr<std::string> Get(const std::string&,
                                    absl::Duration) override {
      return absl::UnavailableError("the Store is gone");
    }
  } broken;
  for (const int rank : {0, 1}) {
    EXPECT_THAT(FormGroup(&broken, PlaceOn("a"), rank, OptionsFor(2))
                    .status()
                    .ToString(),
                HasSubstr("the Store is gone"));
  }
}

TEST(RendezvousTest, TooManyRanksOfOneHostAreRefused) {
  MemoryBoard board;
  for (int rank = 1; rank < 65; ++rank) {
    ASSERT_TRUE(board
                    .Set("rank " + std::to_string(rank) + ", round 1",
                         ToText(PlaceOn("a")))
                    .ok());
  }
  const auto group = FormGroup(&board, PlaceOn("a"), 0, OptionsFor(65));
  EXPECT_THAT(group.status().ToString(), HasSubstr("up to 64 ranks on one"));
}

TEST(RendezvousTest, RanksOutOfRangeAreRefused) {
  MemoryBoard board;
  for (const int rank : {-1, 2}) {
    EXPECT_EQ(
        FormGroup(&board, PlaceOn("a"), rank, OptionsFor(2)).status().code(),
        absl::StatusCode::kInvalidArgument);
  }
  for (const int ranks : {0, -1, 257}) {
    EXPECT_EQ(
        FormGroup(&board, PlaceOn("a"), 0, OptionsFor(ranks)).status().code(),
        absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace pytorch
}  // namespace penstock
