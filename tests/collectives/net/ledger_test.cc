#include "collectives/net/ledger.h"

#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "collectives/net/message.h"
#include "gtest/gtest.h"
#include "transport/memory/bytes.h"
#include "transport/progress/spin_policy.h"

namespace penstock::collectives {
namespace {

// The ledger of rank 0 of two ranks.
class LedgerTest : public testing::Test {
 protected:
  Ledger ledger_{0, 2, progress::PollingMode::kEvent};
};

TEST_F(LedgerTest, OperationZeroIsThePeersMistake) {
  ledger_.OnNotice(1, 0, {1, 2});
  EXPECT_EQ(ledger_.status().message(),
            "rank 1 calls operation 0, and the first operation is 1");
}

// The payloads have a size, but no memory.
TEST_F(LedgerTest, AFloodOfPartsEndsTheGroupAndIsDropped) {
  constexpr uint64_t kParts = Ledger::kMostUntaken / kMaxPartBytes;
  const auto owner = std::make_shared<int>();
  uint64_t parts = 0;
  for (; ledger_.status().ok() && parts < kParts + 1; ++parts) {
    memory::Bytes bytes;
    bytes.size = kMaxPartBytes;
    bytes.owner = owner;
    ledger_.OnPart(1, {ChannelOf(1), parts + 1, 0},
                   {{}, memory::Payload(bytes), nullptr});
  }
  EXPECT_GT(parts, kParts - kParts / 100);
  EXPECT_EQ(ledger_.status().message(),
            "rank 1 sends more than 4294967296 bytes that rank 0 has not "
            "received");
  EXPECT_EQ(owner.use_count(), 1);
}

}  // namespace
}  // namespace penstock::collectives
