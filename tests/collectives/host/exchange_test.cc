#include "collectives/host/exchange.h"

#include <cstdint>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/host/meeting.h"
#include "gtest/gtest.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {
namespace {

constexpr absl::Duration kLong = absl::Seconds(30);
constexpr uint64_t kPoolBytes = 8192;
constexpr CallWords kCall = {1, 2};

// The exchanges of two ranks.
class ExchangeTest : public testing::Test {
 protected:
  ExchangeTest() {
    const SegmentSizes sizes = {kMinSlotBytes, kPoolBytes};
    auto meeting = Meeting::Open();
    EXPECT_TRUE(meeting.ok()) << meeting.status();
    const std::string invitation = meeting->invitation();
    auto led = std::async(std::launch::async,
                          [&] { return meeting->Lead(2, sizes, kLong); });
    auto joined = Join(invitation, 1, 2, sizes, kLong);
    auto members = led.get();
    EXPECT_TRUE(members.ok()) << members.status();
    EXPECT_TRUE(joined.ok()) << joined.status();
    first_ = Made(*std::move(members));
    second_ = Made(*std::move(joined));
  }

  static std::unique_ptr<Exchange> Made(Members members) {
    return std::make_unique<Exchange>(std::move(members),
                                      progress::PollingMode::kAdaptive, kLong);
  }

  // Lets both ranks meet. Rank 0 names `place`.
  void Meet(uint64_t place) {
    auto met = std::async(std::launch::async,
                          [&] { return first_->Meet(kCall, place); });
    EXPECT_TRUE(second_->Meet(kCall).ok());
    EXPECT_TRUE(met.get().ok());
  }

  std::unique_ptr<Exchange> first_, second_;
};

TEST_F(ExchangeTest, APlaceOutsideOfThePoolIsNoOperand) {
  constexpr size_t kBytes = 192;
  const uint64_t last = kPoolBytes - kBytes + 1;
  for (const uint64_t place : {uint64_t{1}, last}) {
    Meet(place);
    EXPECT_NE(second_->OperandOf(0, kBytes), nullptr) << place;
  }
  for (const uint64_t place :
       {uint64_t{0}, last + 1, kPoolBytes + 1, ~uint64_t{0}}) {
    Meet(place);
    EXPECT_EQ(second_->OperandOf(0, kBytes), nullptr) << place;
  }
  Meet(1);
  EXPECT_EQ(second_->OperandOf(0, kPoolBytes + 1), nullptr);
  EXPECT_EQ(second_->OperandOf(0, ~size_t{0}), nullptr);
}

TEST_F(ExchangeTest, OnlyBytesOfThePoolHaveAPlace) {
  uint8_t* const pool = first_->pool();
  EXPECT_EQ(first_->PlaceOf(pool, kPoolBytes), 1U);
  EXPECT_EQ(first_->PlaceOf(pool + 8, 8), 9U);
  EXPECT_EQ(first_->PlaceOf(pool - 1, 8), 0U);
  EXPECT_EQ(first_->PlaceOf(pool + kPoolBytes - 7, 8), 0U);
  EXPECT_EQ(first_->PlaceOf(pool + 1, ~size_t{0}), 0U);
  EXPECT_EQ(first_->PlaceOf(nullptr, 8), 0U);
}

TEST_F(ExchangeTest, ReadsDoNotCountOnceAPeerHasGivenUp) {
  Meet(1);
  EXPECT_TRUE(second_->CheckReads().ok());
  first_->Abort();
  EXPECT_EQ(second_->CheckReads().code(), absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace penstock::collectives
