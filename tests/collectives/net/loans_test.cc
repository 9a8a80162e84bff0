#include "collectives/net/loans.h"

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/optional.h"
#include "collectives/net/ledger.h"
#include "gtest/gtest.h"
#include "transport/memory/bytes.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {
namespace {

TEST(Loans, EndWithTheLastCopyAndNotify) {
  const auto ledger =
      std::make_shared<Ledger>(0, 3, progress::PollingMode::kAdaptive);
  const auto loans = std::make_shared<Loans>(ledger);
  const std::vector<uint8_t> memory(100);
  memory::Bytes first = loans->Lend(1, memory.data() + 10, 20);
  memory::Bytes second = loans->Lend(2, memory.data() + 40, 20);
  EXPECT_EQ(first.data, memory.data() + 10);
  EXPECT_EQ(first.size, 20u);
  memory::Bytes copy = first.Part(3, 4);
  first = memory::Bytes();
  EXPECT_EQ(loans->Borrower(), absl::optional<int>(1));
  const uint32_t seen = ledger->signal().count();
  copy = memory::Bytes();
  EXPECT_NE(ledger->signal().count(), seen);
  EXPECT_EQ(loans->Borrower(), absl::optional<int>(2));
  second = memory::Bytes();
  EXPECT_EQ(loans->Borrower(), absl::nullopt);
}

TEST(Loans, AreFoundByRangesThatOverlap) {
  const auto loans = std::make_shared<Loans>(
      std::make_shared<Ledger>(0, 3, progress::PollingMode::kAdaptive));
  const std::vector<uint8_t> memory(100);
  const uint8_t* const begin = memory.data();
  const memory::Bytes first = loans->Lend(1, begin + 10, 20);
  const memory::Bytes second = loans->Lend(2, begin + 40, 20);
  const absl::optional<int> one = 1;
  const absl::optional<int> two = 2;
  EXPECT_EQ(loans->BorrowerOf(begin, 11), one);
  EXPECT_EQ(loans->BorrowerOf(begin + 15, 1), one);
  EXPECT_EQ(loans->BorrowerOf(begin + 29, 5), one);
  EXPECT_EQ(loans->BorrowerOf(begin + 30, 11), two);
  EXPECT_EQ(loans->BorrowerOf(begin + 59, 41), two);
  EXPECT_EQ(loans->BorrowerOf(begin, 10), absl::nullopt);
  EXPECT_EQ(loans->BorrowerOf(begin + 30, 10), absl::nullopt);
  EXPECT_EQ(loans->BorrowerOf(begin + 60, 40), absl::nullopt);
}

}  // namespace
}  // namespace penstock::collectives
