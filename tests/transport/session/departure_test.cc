#include "transport/session/departure.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/session/session_test_util.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace session {
namespace {

const absl::Status kWhy = absl::UnavailableError("enough");
constexpr char kFirst[] = "goaway 4294967295 UNAVAILABLE: enough";

class DepartureTest : public SessionTest {
 protected:
  DepartureTest() {
    Open();
    departure_ = std::make_unique<Departure>(server_->operator->());
  }
  // The answer to the only ping that was sent.
  static constexpr uint64_t kPong = UINT64_MAX;

  std::unique_ptr<Departure> departure_;
};

TEST_F(DepartureTest, ServesWhatIsOpenedUntilTheClientHasAnswered) {
  EXPECT_TRUE(departure_->OnStreamOpened(1));
  EXPECT_TRUE(departure_->Begin(kWhy));
  Run();
  EXPECT_EQ(client_->Take(), (Lines{kFirst, "ping"}));
  EXPECT_TRUE(departure_->OnStreamOpened(3));
  EXPECT_FALSE(departure_->gone());

  EXPECT_FALSE(departure_->OnPong(1)) << "somebody else's";
  EXPECT_TRUE(departure_->OnPong(kPong));
  Run();
  EXPECT_EQ(client_->Take(), Lines{"goaway 3 UNAVAILABLE: enough"});
  EXPECT_TRUE(departure_->gone());
  EXPECT_FALSE(departure_->OnStreamOpened(5));
}

TEST_F(DepartureTest, EndsWhereTheClientDoesNotAnswerInTime) {
  departure_->Begin(kWhy);
  departure_->OnTimeLimit();
  Run();
  EXPECT_EQ(client_->Take(),
            (Lines{kFirst, "ping", "goaway 0 UNAVAILABLE: enough"}));
}

TEST_F(DepartureTest, TimeLimitOfWhatHasNotBegunIsNothing) {
  departure_->OnTimeLimit();
  Run();
  EXPECT_EQ(client_->Take(), Lines{});
  EXPECT_FALSE(departure_->gone());
}

TEST_F(DepartureTest, EndsAtOnceAndOnlyOnce) {
  departure_->OnStreamOpened(7);
  departure_->End(kWhy);
  departure_->End(kWhy);
  departure_->OnTimeLimit();
  EXPECT_FALSE(departure_->Begin(kWhy));
  EXPECT_FALSE(departure_->OnPong(kPong));
  Run();
  EXPECT_EQ(client_->Take(), Lines{"goaway 7 UNAVAILABLE: enough"});
}

TEST_F(DepartureTest, StreamsThatAreTakenBackAreNotNamed) {
  departure_->OnStreamOpened(7);
  departure_->TakeBack(5);
  departure_->End(kWhy);
  Run();
  EXPECT_EQ(client_->Take(), Lines{"goaway 4 UNAVAILABLE: enough"});
}

TEST_F(DepartureTest, ClosedSessionDoesNotGo) {
  (*server_)->Close(kWhy);
  EXPECT_FALSE(departure_->Begin(kWhy));
  departure_->End(kWhy);
  EXPECT_FALSE(departure_->gone());
}

TEST_F(DepartureTest, ClientIsToldTheLastStreamOnceMore) {
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  EXPECT_TRUE(departure_->gone());
  EXPECT_EQ(departure_->peer_reason(), "age");
  EXPECT_TRUE(departure_->OnGoaway(9, "age").ok());
  EXPECT_EQ(departure_->OnGoaway(11, "age").code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace session
}  // namespace penstock
