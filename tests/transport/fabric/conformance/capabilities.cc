// Tests the capabilities that an endpoint reports.

#include <string>

#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"
#include "transport/fabric/fabric.h"
#include "transport/wire/frame.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

bool AreEqual(const Capabilities& one, const Capabilities& other) {
  return one.max_packet_bytes == other.max_packet_bytes &&
         one.eager_max_bytes == other.eager_max_bytes &&
         one.read_chunk_bytes == other.read_chunk_bytes &&
         one.max_reads == other.max_reads && one.can_load == other.can_load &&
         one.is_lifeline == other.is_lifeline;
}

TEST_P(Conformance, WholeFrameFitsIntoOnePacket) {
  if (!harness_->takes_frames()) {
    GTEST_SKIP() << "this fake has smaller packets on purpose";
  }
  EXPECT_GE(max_packet(), wire::kMaxFrameBytes);
}

TEST_P(Conformance, LimitsAreUsable) {
  EXPECT_GT(max_packet(), 0u);
  EXPECT_GT(capabilities().eager_max_bytes, 0u);
  EXPECT_GT(capabilities().read_chunk_bytes, 0u);
  EXPECT_GT(capabilities().max_reads, 0);
}

// Tests that capabilities do not change and are equal at both ends. The session
// asks for them at any time, and uses one answer for both directions.
TEST_P(Conformance, CapabilitiesAreConstantAndTheSameAtBothEnds) {
  const Capabilities first = a()->capabilities();
  EXPECT_TRUE(AreEqual(first, b()->capabilities()));
  ASSERT_NO_FATAL_FAILURE(ExpectAlive());
  EXPECT_TRUE(AreEqual(first, a()->capabilities()));
  Kill(Side::kB);
  Pump();
  EXPECT_TRUE(AreEqual(first, a()->capabilities()));
}

TEST_P(Conformance, DescriptionIsOneLine) {
  EXPECT_EQ(a()->Describe().find('\n'), std::string::npos);
}

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
