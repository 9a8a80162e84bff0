#include "collectives/net/patience.h"

#include <cstdint>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "collectives/fault.h"
#include "collectives/net/ledger.h"
#include "collectives/net/message.h"
#include "gtest/gtest.h"

namespace penstock::collectives {
namespace {

// Tests that a rank's last answer counts, although the news that the rank
// leaves came earlier over another connection.
TEST(Patience, AwaitsTheAnswersOfARankThatHasLeft) {
  Ledger ledger(0, 2, {});
  Patience patience(&ledger, nullptr, 0, {}, absl::InfiniteDuration());
  ledger.OnLeave(1, 0);
  EXPECT_EQ(patience.AwaitAnswers(1, ledger.signal().count()),
            absl::OkStatus());
  ledger.OnGone(1, Fault::kDied);
  EXPECT_EQ(patience.AwaitAnswers(1, ledger.signal().count()).message(),
            "rank 1 has left the group");
}

TEST(Patience, LooksAgainAfterAnEventBeforeALeave) {
  Ledger ledger(0, 2, {});
  Patience patience(&ledger, nullptr, 0, {}, absl::InfiniteDuration());
  const uint32_t seen = ledger.signal().count();
  ledger.OnPart(1, Key{1, 1, 0}, Part());
  ledger.OnLeave(1, 0);
  EXPECT_EQ(patience.Await(1, seen), absl::OkStatus());
  EXPECT_FALSE(patience.Await(1, ledger.signal().count()).ok());
}

}  // namespace
}  // namespace penstock::collectives
