#include "transport/session/departure.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

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
  // The cookie of the answer to the only ping that was sent.
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
  EXPECT_FALSE(departure_->gone());
  EXPECT_EQ(departure_->peer_reason(), "age");
  EXPECT_TRUE(departure_->OnGoaway(9, "age").ok());
  EXPECT_TRUE(departure_->gone());
  EXPECT_EQ(departure_->OnGoaway(11, "age").code(),
            absl::StatusCode::kInvalidArgument);
}

// The client departs. The other session is its server.
class ClientDepartureTest : public SessionTest {
 protected:
  ClientDepartureTest() {
    Open();
    departure_ = std::make_unique<Departure>(client_->operator->());
  }
  // Sends a ping with each cookie. Returns the server's events.
  Lines Ping(std::vector<uint64_t> cookies) {
    for (uint64_t cookie : cookies) (*server_)->SendPing(cookie);
    Run();
    return server_->Take();
  }
  Lines Heard() {
    Run();
    return server_->Take();
  }

  std::unique_ptr<Departure> departure_;
};

TEST_F(ClientDepartureTest, TheServerHearsWhenTheChannelHasLeft) {
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  EXPECT_EQ(Ping({7}), Lines{});
  EXPECT_FALSE(departure_->gone()) << "calls that come are served";
  departure_->OnChannelLeft();
  EXPECT_TRUE(departure_->gone());
  EXPECT_EQ(Heard(), Lines{"pong 7"});
  departure_->OnChannelLeft();
  EXPECT_EQ(Heard(), Lines{});
}

TEST_F(ClientDepartureTest, TheServerHearsAfterTheTimeLimit) {
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  EXPECT_EQ(Ping({7}), Lines{});
  departure_->OnTimeLimit();
  EXPECT_TRUE(departure_->gone());
  EXPECT_EQ(Heard(), Lines{"pong 7"});
}

TEST_F(ClientDepartureTest, OnlyOneAnswerIsHeldBack) {
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  EXPECT_EQ(Ping({7, 8, 9}), (Lines{"pong 8", "pong 9"}));
  departure_->OnChannelLeft();
  EXPECT_EQ(Heard(), Lines{"pong 7"});
  EXPECT_EQ(Ping({10}), Lines{"pong 10"});
}

TEST_F(ClientDepartureTest, PingThatComesAfterTheChannelHasLeftIsAnswered) {
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  departure_->OnChannelLeft();
  EXPECT_EQ(Ping({7}), Lines{"pong 7"});
}

TEST_F(ClientDepartureTest, LastStreamEndsItAtOnce) {
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  EXPECT_EQ(Ping({7}), Lines{});
  EXPECT_TRUE(departure_->OnGoaway(3, "age").ok());
  EXPECT_TRUE(departure_->gone());
  EXPECT_EQ(Heard(), Lines{"pong 7"});
}

TEST_F(ClientDepartureTest, RefusalEndsItAtOnce) {
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  EXPECT_EQ(Ping({7}), Lines{});
  departure_->Leave();
  EXPECT_TRUE(departure_->gone());
  EXPECT_EQ(Heard(), Lines{"pong 7"});
}

TEST_F(ClientDepartureTest, GoawayThatComesLaterChangesNothing) {
  departure_->Leave();
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  EXPECT_TRUE(departure_->gone());
  EXPECT_EQ(Ping({7}), Lines{"pong 7"});
}

TEST_F(ClientDepartureTest, LastIdEndsIt) {
  Departure departure(client_->operator->(), wire::kLastStreamUnknown - 2);
  EXPECT_EQ(departure.OpenStream(), wire::kLastStreamUnknown - 2);
  EXPECT_FALSE(departure.gone());
  EXPECT_EQ(departure.OpenStream(), wire::kLastStreamUnknown - 1);
  EXPECT_TRUE(departure.gone());
}

TEST_F(ClientDepartureTest, ChannelThatLeavesAClosedSessionSaysNothing) {
  EXPECT_TRUE(departure_->OnGoaway(wire::kLastStreamUnknown, "age").ok());
  EXPECT_EQ(Ping({7}), Lines{});
  (*client_)->Close(kWhy);
  departure_->OnChannelLeft();
  EXPECT_TRUE(departure_->gone());
}

}  // namespace
}  // namespace session
}  // namespace penstock
