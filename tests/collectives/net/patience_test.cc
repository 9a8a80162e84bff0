#include "collectives/net/patience.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/fault.h"
#include "collectives/net/ledger.h"
#include "collectives/net/message.h"
#include "gtest/gtest.h"
#include "transport/base/steady_time.h"

namespace penstock::collectives {
namespace {

// Tests that a rank's last answer counts. The news that the rank leaves arrives
// earlier, over another connection.
TEST(Patience, AwaitsTheAnswersOfARankThatHasLeft) {
  Ledger ledger(0, 2, {});
  Patience patience(&ledger, absl::InfiniteDuration());
  ledger.OnLeave(1, 0);
  EXPECT_EQ(patience.AwaitAnswers(1, ledger.signal().count()),
            absl::OkStatus());
  ledger.OnGone(1, Fault::kDied);
  EXPECT_EQ(patience.AwaitAnswers(1, ledger.signal().count()).message(),
            "rank 1 has left the group");
}

TEST(Patience, LooksAgainAfterAnEventBeforeALeave) {
  Ledger ledger(0, 2, {});
  Patience patience(&ledger, absl::InfiniteDuration());
  const uint32_t seen = ledger.signal().count();
  ledger.OnPart(1, Key{1, 1, 0}, Part());
  ledger.OnLeave(1, 0);
  EXPECT_EQ(patience.Await(1, seen), absl::OkStatus());
  EXPECT_FALSE(patience.Await(1, ledger.signal().count()).ok());
}

// Waits whose time is 1 ms. The time of a wait for rank 1 has passed.
class PatienceTimes : public testing::Test {
 protected:
  PatienceTimes() { WaitOnce(1); }

  // Begins to wait, and lets the time pass.
  void WaitOnce(int peer) {
    ASSERT_EQ(patience_.Await(peer, seen()), absl::OkStatus());
    Pass();
  }
  static void Pass() {
    const absl::Time begun = base::SteadyNow();
    while (base::SteadyNow() - begun < kShort) {
    }
  }
  uint32_t seen() { return ledger_.signal().count(); }

  static constexpr absl::Duration kShort = absl::Milliseconds(1);
  Ledger ledger_{0, 3, {}};
  Patience patience_{&ledger_, kShort};
};

TEST_F(PatienceTimes, NamesThePeerThatIsLate) {
  EXPECT_EQ(patience_.Await(1, seen()).message(),
            "rank 1 did not call the operation within 1ms");
}

TEST_F(PatienceTimes, EachPeerHasItsOwn) {
  WaitOnce(2);
  EXPECT_EQ(patience_.Await(2, seen()).message(),
            "rank 2 did not call the operation within 1ms");
}

TEST_F(PatienceTimes, EachKindOfWaitHasItsOwn) {
  EXPECT_EQ(patience_.AwaitAnswers(1, seen()), absl::OkStatus());
  Pass();
  EXPECT_EQ(patience_.AwaitAnswers(1, seen()).message(),
            "rank 1 did not receive what was sent within 1ms");
}

TEST_F(PatienceTimes, RestartAfterAnEvent) {
  patience_.Restart();
  WaitOnce(1);
}

// Tests that each peer is told the operation once in a wait for it.
TEST(Patience, TellsEachLatePeerTheOperationOnce) {
  Ledger ledger(0, 3, {});
  std::vector<int> told;
  Patience patience(
      &ledger,
      [&](int peer, const Message& notice) {
        told.push_back(peer);
        EXPECT_EQ(notice.kind, Message::Kind::kNotice);
        EXPECT_EQ(notice.from, 0U);
        EXPECT_EQ(notice.key.number, 5U);
        EXPECT_EQ(notice.words, (CallWords{3, 4}));
      },
      5, {3, 4}, absl::InfiniteDuration());
  const auto await = [&](int peer) {
    ASSERT_EQ(patience.Await(peer, ledger.signal().count()), absl::OkStatus());
  };
  for (const int peer : {1, 2}) {
    const size_t before = told.size();
    for (int i = 0; i < 500 && told.size() == before; ++i) await(peer);
    for (int i = 0; i < 3; ++i) await(peer);  // tells the peer no second time
  }
  EXPECT_EQ(told, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace penstock::collectives
