#include "frameworks/torch/rendezvous.h"

#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "collectives/group.h"
#include "collectives/host/group.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
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

// Changes a line of what rank 1 says of its place.
class OtherPlace final : public Board {
 public:
  OtherPlace(Board* board, int line) : board_(board), line_(line) {}

  absl::Status Set(const std::string& key, const std::string& value) override {
    std::vector<std::string> lines = absl::StrSplit(value, '\n');
    if (key.rfind("rank 1,", 0) == 0) lines.at(line_) = "another";
    return board_->Set(key, absl::StrJoin(lines, "\n"));
  }

  absl::StatusOr<int64_t> Count(const std::string& key) override {
    return board_->Count(key);
  }

  absl::StatusOr<std::string> Get(const std::string& key,
                                  absl::Duration timeout) override {
    return board_->Get(key, timeout);
  }

 private:
  Board* const board_;
  const int line_;
};

// Rank 1 is elsewhere: returns what ranks 0 and 2 are told.
std::vector<std::string> Complaints(int line) {
  MemoryBoard board;
  OtherPlace other(&board, line);
  std::vector<std::string> messages(3);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 3; ++rank) {
    threads.emplace_back([&, rank] {
      messages[rank] =
          FormGroup(&other, rank, OptionsFor(3)).status().ToString();
    });
  }
  for (std::thread& thread : threads) thread.join();
  return messages;
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
    auto group = FormGroup(&board, rank, OptionsFor(2));
    ASSERT_TRUE(group.ok()) << group.status();
    EXPECT_EQ((*group)->Barrier(), absl::OkStatus());
  };
  for (int i = 0; i < 3; ++i) {
    // Rank 1 comes first, and sees what the group before has left.
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

TEST(RendezvousTest, AllRanksLearnWhichRankIsElsewhere) {
  for (const std::string& message : Complaints(0)) {
    EXPECT_THAT(message, HasSubstr("rank 1 is on another host"));
    EXPECT_THAT(message, HasSubstr("use gloo"));
  }
  for (const std::string& message : Complaints(1)) {
    EXPECT_THAT(message, HasSubstr("rank 1 is in another network namespace"));
  }
  for (const std::string& message : Complaints(2)) {
    EXPECT_THAT(message, HasSubstr("rank 1 belongs to user another"));
  }
}

TEST(RendezvousTest, ARankThatDoesNotComeIsNamed) {
  MemoryBoard board;
  collectives::HostGroupOptions options = OptionsFor(2);
  options.timeout = absl::Milliseconds(1);
  const auto group = FormGroup(&board, 0, options);
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
    EXPECT_THAT(FormGroup(&broken, rank, OptionsFor(2)).status().ToString(),
                HasSubstr("the Store is gone"));
  }
}

TEST(RendezvousTest, RanksOutOfRangeAreRefused) {
  MemoryBoard board;
  for (const int rank : {-1, 2}) {
    EXPECT_EQ(FormGroup(&board, rank, OptionsFor(2)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  for (const int ranks : {0, -1, 65}) {
    EXPECT_EQ(FormGroup(&board, 0, OptionsFor(ranks)).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace pytorch
}  // namespace penstock
