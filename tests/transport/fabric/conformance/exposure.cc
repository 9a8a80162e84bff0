// Tests how long exposed memory is held, and what fabrics do without memory.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/conformance/conformance.h"
#include "transport/memory/bytes.h"

namespace penstock {
namespace fabric {
namespace conformance {
namespace {

// Returns a payload, and a pointer by which a test sees whether anybody still
// holds the payload.
std::pair<memory::Payload, std::weak_ptr<const void>> WatchedPayload(
    size_t size) {
  memory::Payload payload = PayloadOf(RandomBytes(size, 1));
  std::weak_ptr<const void> owner = payload.pieces()[0].owner;
  return {std::move(payload), std::move(owner)};
}

TEST_P(Conformance, PayloadMayGoWhereStableStays) {
  const std::string bytes = RandomBytes(several_chunks(), 1);
  memory::Payload payload = PayloadOf(bytes);
  const Exposure exposure = Expose(Side::kA, payload);
  payload = memory::Payload();
  std::string stable(bytes.size(), '.');
  exposure.stable.CopyTo(reinterpret_cast<uint8_t*>(&stable[0]));
  EXPECT_TRUE(stable == bytes);
  const auto read = ReadWhole(Side::kB, exposure.region);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(*read == bytes);
}

TEST_P(Conformance, WithdrawnPayloadIsLetGo) {
  auto watched = WatchedPayload(several_chunks());
  Exposure exposure = Expose(Side::kA, watched.first);
  EXPECT_TRUE(ReadWhole(Side::kB, exposure.region).ok());
  Release(Side::kA, exposure.region);
  exposure = Exposure();
  watched.first = memory::Payload();
  Pump();
  EXPECT_TRUE(watched.second.expired());
}

TEST_P(Conformance, DestroyedEndLetsGoOfPayloads) {
  auto watched = WatchedPayload(several_chunks());
  Exposure exposure = Expose(Side::kA, watched.first);
  Target target(capabilities().read_chunk_bytes);
  Read(Side::kB, exposure.region[0], 0, target.span(), 1);
  Kill(Side::kA);
  exposure = Exposure();
  watched.first = memory::Payload();
  Pump();
  EXPECT_TRUE(watched.second.expired());
}

TEST_P(Conformance, UnknownRegionIsWithdrawnWithoutEffect) {
  const Exposure exposure = Expose(Side::kA, PayloadOf("some bytes"));
  a()->Withdraw(RemoteRegion(1));
  RemoteRegion unknown = exposure.region;
  unknown[0].key ^= uint64_t{1} << 63;
  a()->Withdraw(unknown);
  // Withdraws the peer's region. The region's key names no region of this end.
  b()->Withdraw(exposure.region);
  EXPECT_EQ(ReadWhole(Side::kB, exposure.region).value_or("error"),
            "some bytes");
  a()->Withdraw(exposure.region);
  a()->Withdraw(exposure.region);
  ExpectAlive();
}

// Exposes and reads many times, like an end that runs for hours.
TEST_P(Conformance, MemoryOfRegionsThatWereReadComesBack) {
  constexpr size_t kBytes = 1024 * 1024;
  const std::string bytes = RandomBytes(kBytes, 2);
  for (int i = 0; i < 24; ++i) {
    const Exposure exposure = Expose(Side::kA, PayloadOf(bytes));
    const auto read = ReadWhole(Side::kB, exposure.region);
    ASSERT_TRUE(read.ok()) << read.status();
    ASSERT_TRUE(*read == bytes);
    Release(Side::kA, exposure.region);
  }
}

TEST_P(Conformance, NoRoomIsANormalAnswer) {
  if (!harness_->FillMemory(Side::kA)) {
    GTEST_SKIP() << "this fabric exposes in place, so there always is room";
  }
  const memory::Payload payload = PayloadOf(RandomBytes(1000, 3));
  const absl::Status refused = a()->Expose(payload, 1).status();
  EXPECT_TRUE(absl::IsResourceExhausted(refused)) << refused;
  ASSERT_TRUE(Send(Side::kA, "goes as packets instead"));
  Pump();
  EXPECT_EQ(at_b().packets.size(), 1u);
  harness_->FreeMemory();
  ExpectAlive();
}

}  // namespace
}  // namespace conformance
}  // namespace fabric
}  // namespace penstock
