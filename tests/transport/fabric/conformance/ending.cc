// Tests the end of a connection while packets, reads and exposures are in
// flight.

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// A fixture that starts all kinds of operations at both ends, and records their
// results.
class ConformanceEnding : public Conformance {
 protected:
  static constexpr size_t kSize = 900;

  // Sends packets up to the last credit, and starts reads and exposures up to
  // the fabric's limits.
  void StartEverything() {
    bytes_ = RandomBytes(kSize, 1);
    target_[0] = target_[1] = Target(kSize);
    for (Side side : kSides) {
      exposures_.push_back(Expose(side, PayloadOf(bytes_, {1, 300})));
      parts_[static_cast<int>(side)] = exposures_.back().region[0];
    }
    for (Side side : kSides) StartReads(side);
    for (Side side : kSides) SendUntilRefused(side);
  }
  size_t reads_at_once() const { return capabilities().max_reads; }
  size_t one_read() const {
    return std::min(capabilities().read_chunk_bytes, kSize / reads_at_once());
  }

  void StartReads(Side side) {
    const RemotePart& part = parts_[static_cast<int>(Other(side))];
    for (size_t i = 0; i < reads_at_once(); ++i) {
      Read(side, part, i * one_read(),
           target(side).span().subspan(i * one_read(), one_read()), i);
    }
  }
  Target& target(Side side) { return target_[static_cast<int>(side)]; }
  // Expects that each read has ended, with or without success. The recorder
  // checks that none ends twice.
  void ExpectEnded(Side side) {
    ASSERT_EQ(at(side).broken.size(), 1u);
    EXPECT_EQ(at(side).reads.size(), reads_at_once());
    for (size_t i = 0; i < reads_at_once(); ++i) {
      if (!at(side).Succeeded(i)) continue;
      EXPECT_TRUE(target(side).text().substr(i * one_read(), one_read()) ==
                  bytes_.substr(i * one_read(), one_read()));
    }
    EXPECT_TRUE(target(side).margins_are_untouched());
  }

  std::string bytes_;
  Target target_[2] = {Target(0), Target(0)};
  RemotePart parts_[2];
  std::vector<Exposure> exposures_;
};

TEST_P(ConformanceEnding, PeersDeathIsReportedOnce) {
  for (Side dead : kSides) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    Kill(dead);
    Pump();
    Pump();
    EXPECT_EQ(at(Other(dead)).broken.size(), 1u);
    EXPECT_TRUE(at(dead).IsSilent());
  }
}

TEST_P(ConformanceEnding, ReadsUnderWayEndBeforeTheConnection) {
  for (Side dead : kSides) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    exposures_.clear();
    StartEverything();
    Kill(dead);
    Pump();
    ASSERT_NO_FATAL_FAILURE(ExpectEnded(Other(dead)));
  }
}

TEST_P(ConformanceEnding, BothEndsLearnOnceThatTheConnectionIsCut) {
  StartEverything();
  if (!harness_->Cut()) {
    GTEST_SKIP() << "this fabric breaks only with one of its ends";
  }
  Pump();
  for (Side side : kSides) ASSERT_NO_FATAL_FAILURE(ExpectEnded(side));
}

// Calls the functions of a broken end before its owner has learned of the
// break.
TEST_P(ConformanceEnding, CallsToABrokenEndHaveNoEventsButTheReadsEnd) {
  StartEverything();
  Kill(Side::kA);
  Pump();
  ASSERT_NO_FATAL_FAILURE(ExpectEnded(Side::kB));
  Send(Side::kB, "into the void");
  const auto exposure = b()->Expose(PayloadOf("bytes"), 1);
  if (exposure.ok()) b()->Withdraw(exposure->region);
  b()->RingDoorbell();
  b()->SetArmed(true);
  (void)b()->TakeDoorbellRequest();
  EXPECT_FALSE(b()->HasInput());
  EXPECT_FALSE(b()->Poll());
  Target late(10);
  Read(Side::kB, parts_[0], 0, late.span(), 77);
  Pump();
  EXPECT_EQ(at_b().reads.count(77), 1u);
  EXPECT_TRUE(at_b().Failed(77) || late.text() == bytes_.substr(0, 10));
}

TEST_P(ConformanceEnding, DestroyedEndHasNoMoreEvents) {
  for (Side first : kSides) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    StartEverything();
    harness_->Step();
    Kill(first);
    Kill(Other(first));
    Pump();  // any event would be reported here
  }
}

TEST_P(ConformanceEnding, ReadsOfADestroyedEndWriteNothingMore) {
  StartEverything();
  Kill(Side::kB);
  target(Side::kB).Reset();
  Pump();
  EXPECT_TRUE(target(Side::kB).is_untouched());
}

TEST_P(ConformanceEnding, DeathAfterAnyStepLosesOnlyTheRest) {
  bool finished = false;
  for (int steps = 0; !finished && steps < 200; ++steps) {
    ASSERT_NO_FATAL_FAILURE(Connect());
    exposures_.clear();
    StartEverything();
    int left = steps;
    while (left > 0 && harness_->Step()) --left;
    finished = left > 0;
    Kill(Side::kA);
    Pump();
    ASSERT_NO_FATAL_FAILURE(ExpectEnded(Side::kB));
    const std::string full(max_packet(), 'm');
    for (const std::string& text : at_b().packets) ASSERT_TRUE(text == full);
  }
}

INSTANTIATE_TEST_SUITE_P(Fabric, ConformanceEnding,
                         ::testing::ValuesIn(Fabrics()), NameOf);

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
