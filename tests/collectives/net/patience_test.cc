#include "collectives/net/patience.h"

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "collectives/call.h"
#include "collectives/fault.h"
#include "collectives/net/ledger.h"
#include "collectives/net/message.h"
#include "gtest/gtest.h"

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

// Waits until the timeout of 1 ms is over, whatever the load of the machine.
void WaitForAll(Ledger* ledger, Patience* patience, int peer) {
  ASSERT_EQ(patience->Await(peer, ledger->signal().count()), absl::OkStatus());
  absl::SleepFor(absl::Milliseconds(2));
}

constexpr absl::Duration kShort = absl::Milliseconds(1);

TEST(Patience, NamesThePeerThatIsLate) {
  Ledger ledger(0, 3, {});
  Patience patience(&ledger, kShort);
  WaitForAll(&ledger, &patience, 1);
  EXPECT_EQ(patience.Await(1, ledger.signal().count()).message(),
            "rank 1 did not call the operation within 1ms");
}

// Tests that rank 2 has its own time after a wait for rank 1.
TEST(Patience, GivesEachPeerItsOwnTime) {
  Ledger ledger(0, 3, {});
  Patience patience(&ledger, kShort);
  WaitForAll(&ledger, &patience, 1);
  WaitForAll(&ledger, &patience, 2);
  EXPECT_EQ(patience.Await(2, ledger.signal().count()).message(),
            "rank 2 did not call the operation within 1ms");
}

TEST(Patience, GivesEachKindOfWaitItsOwnTime) {
  Ledger ledger(0, 2, {});
  Patience patience(&ledger, kShort);
  WaitForAll(&ledger, &patience, 1);
  ASSERT_EQ(patience.AwaitAnswers(1, ledger.signal().count()),
            absl::OkStatus());
  absl::SleepFor(absl::Milliseconds(2));
  EXPECT_EQ(patience.AwaitAnswers(1, ledger.signal().count()).message(),
            "rank 1 did not receive what was sent within 1ms");
}

TEST(Patience, RestartsAfterAnEvent) {
  Ledger ledger(0, 2, {});
  Patience patience(&ledger, kShort);
  WaitForAll(&ledger, &patience, 1);
  patience.Restart();
  WaitForAll(&ledger, &patience, 1);
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
  for (const int peer : {1, 2}) {
    const absl::Time begun = absl::Now();
    while (absl::Now() - begun < absl::Milliseconds(120)) {
      ASSERT_EQ(patience.Await(peer, ledger.signal().count()),
                absl::OkStatus());
    }
  }
  EXPECT_EQ(told, (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace penstock::collectives
