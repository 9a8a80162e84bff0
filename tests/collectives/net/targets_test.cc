#include "collectives/net/targets.h"

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/types/optional.h"
#include "collectives/net/ledger.h"
#include "collectives/net/message.h"
#include "gtest/gtest.h"
#include "transport/memory/destinations.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {
namespace {

constexpr Key kPart = {0, 7, 3};

class TargetsTest : public testing::Test {
 protected:
  const std::shared_ptr<Ledger> ledger_ =
      std::make_shared<Ledger>(0, 3, progress::PollingMode::kAdaptive);
  Targets targets_{ledger_};
  std::vector<uint8_t> memory_ = std::vector<uint8_t>(100);
};

TEST_F(TargetsTest, IsClaimedOnceByThePartOfItsRank) {
  targets_.Offer(1, kPart, memory_.data() + 10, 20);
  EXPECT_EQ(targets_.Claim(2, kPart), nullptr);
  EXPECT_EQ(targets_.Claim(1, {0, 7, 4}), nullptr);
  EXPECT_EQ(targets_.Claim(1, {0, 8, 3}), nullptr);
  EXPECT_EQ(targets_.Claim(1, {1, 7, 3}), nullptr);
  EXPECT_EQ(targets_.Writer(), absl::nullopt);
  const auto claim = targets_.Claim(1, kPart);
  ASSERT_NE(claim, nullptr);
  ASSERT_EQ(claim->by_size().size(), 1u);
  EXPECT_EQ(claim->by_size()[0].data, memory_.data() + 10);
  EXPECT_EQ(claim->by_size()[0].size, 20u);
  EXPECT_EQ(targets_.Claim(1, kPart), nullptr);
}

TEST_F(TargetsTest, ClaimEndsWithTheLastReferenceAndNotifies) {
  targets_.Offer(2, kPart, memory_.data(), 20);
  auto claim = targets_.Claim(2, kPart);
  auto right = memory::Destinations::Take(claim);
  claim = nullptr;
  EXPECT_EQ(targets_.Writer(), absl::optional<int>(2));
  const uint32_t seen = ledger_->signal().count();
  right = nullptr;
  EXPECT_EQ(targets_.Writer(), absl::nullopt);
  EXPECT_NE(ledger_->signal().count(), seen);
}

TEST_F(TargetsTest, WithdrawalOfAPartLeavesOthers) {
  targets_.Offer(1, kPart, memory_.data(), 20);
  targets_.Offer(2, kPart, memory_.data() + 20, 20);
  targets_.Withdraw(1, kPart);
  EXPECT_EQ(targets_.Claim(1, kPart), nullptr);
  EXPECT_NE(targets_.Claim(2, kPart), nullptr);
}

TEST_F(TargetsTest, WithdrawalLeavesClaims) {
  targets_.Offer(1, kPart, memory_.data(), 20);
  targets_.Offer(2, kPart, memory_.data() + 20, 20);
  const auto claim = targets_.Claim(1, kPart);
  targets_.Withdraw();
  EXPECT_EQ(targets_.Claim(2, kPart), nullptr);
  EXPECT_EQ(targets_.Writer(), absl::optional<int>(1));
}

}  // namespace
}  // namespace penstock::collectives
