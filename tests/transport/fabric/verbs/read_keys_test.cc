// Tests which bytes a peer can read, and until when.

#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/ends.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kLarge = 600 * 1000;  // larger than a payload that is copied

class ReadKeysTest : public testing::Test {
 protected:
  void Open(DeviceOptions device = {}, Options options = {}) {
    ends_.reset();
    ends_ = std::make_unique<Ends>(device, options);
    ASSERT_TRUE(ends_->Connect().ok());
  }
  void SetUp() override { Open(); }

  Exposure Expose(const std::string& text) {
    absl::StatusOr<Exposure> exposure =
        server()->Expose(Ends::PayloadOf(text), 1);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    return exposure.ok() ? *exposure : Exposure();
  }
  std::string Read(const RemoteRegion& region) {
    return ends_->ReadAll(&ends_->client, region);
  }
  End& server() { return ends_->server; }
  End& client() { return ends_->client; }
  Counts counts() { return ends_->api->counts(); }

  std::unique_ptr<Ends> ends_;
};

TEST_F(ReadKeysTest, KeyIsDeadAfterTheWithdrawal) {
  for (const size_t size : {size_t{100}, kLarge}) {
    ASSERT_NO_FATAL_FAILURE(Open());
    const Exposure exposure = Expose(std::string(size, 'x'));
    EXPECT_EQ(Read(exposure.region), std::string(size, 'x'));
    server()->Withdraw(exposure.region);
    ends_->Exchange();
    EXPECT_EQ(Read(exposure.region), "");
    EXPECT_EQ(client().events.broken.size(), 1u) << "the queue pair failed";
  }
}

TEST_F(ReadKeysTest, WindowIsUsedAgainUnderANewKey) {
  std::vector<uint64_t> keys;
  for (int i = 0; i < 100; ++i) {
    const std::string text(1000, static_cast<char>('a' + i % 26));
    const Exposure exposure = Expose(text);
    ASSERT_EQ(Read(exposure.region), text);
    if (!keys.empty()) {
      EXPECT_NE(exposure.region[0].key, keys.back());
    }
    keys.push_back(exposure.region[0].key);
    server()->Withdraw(exposure.region);
  }
  EXPECT_EQ(counts().mws, 1);
  EXPECT_TRUE(server().events.broken.empty());
}

TEST_F(ReadKeysTest, OnlyTheWindowIsReached) {
  const Exposure exposure = Expose(std::string(1000, 'x'));
  RemoteRegion wide = exposure.region;
  wide[0].length += 64;
  EXPECT_EQ(Read(wide), "");
}

TEST_F(ReadKeysTest, LargePayloadIsRegisteredWhereItLies) {
  const int before = counts().mrs;
  const memory::Payload payload = Ends::PayloadOf(std::string(kLarge, 'x'));
  const Exposure exposure = server()->Expose(payload, 1).value();
  EXPECT_EQ(exposure.stable.pieces()[0].data, payload.pieces()[0].data);
  EXPECT_EQ(counts().mrs, before + 1);
  EXPECT_EQ(counts().mws, 1) << "nothing but a window lets the peer in";
  server()->Withdraw(exposure.region);
  ends_->Exchange();
  EXPECT_EQ(counts().mrs, before) << "once the window is closed";
}

TEST_F(ReadKeysTest, SmallPayloadIsCopied) {
  std::string text(1000, 'x');
  const memory::Payload payload(memory::Bytes{
      reinterpret_cast<const uint8_t*>(text.data()), text.size(), nullptr});
  const Exposure exposure = server()->Expose(payload, 1).value();
  text.assign(1000, 'y');
  EXPECT_EQ(Read(exposure.region), std::string(1000, 'x'));
}

// Tests a read-only mapping, which cannot be registered and must be copied.
TEST_F(ReadKeysTest, ReadOnlyMemoryIsCopied) {
  const memory::Payload payload = Ends::PayloadOf(std::string(kLarge, 'x'));
  ends_->api->FailNext(Call::kRegMr, EFAULT);
  const Exposure exposure = server()->Expose(payload, 1).value();
  EXPECT_NE(exposure.stable.pieces()[0].data, payload.pieces()[0].data);
  EXPECT_EQ(Read(exposure.region), std::string(kLarge, 'x'));
}

TEST_F(ReadKeysTest, PiecesBecomeOne) {
  memory::Payload payload = Ends::PayloadOf(std::string(kLarge, 'x'));
  payload.Append(Ends::PayloadOf("tail").pieces()[0]);
  const Exposure exposure = server()->Expose(payload, 1).value();
  EXPECT_EQ(Read(exposure.region), std::string(kLarge, 'x') + "tail");
}

TEST_F(ReadKeysTest, LockedMemoryThatIsExhaustedIsANormalAnswer) {
  DeviceOptions device;
  device.memlock_bytes = 16 << 20;
  ASSERT_NO_FATAL_FAILURE(Open(device));
  for (const size_t size : {size_t{2} << 20, size_t{200} * 1000}) {
    std::vector<RemoteRegion> regions;
    absl::Status status;
    while (regions.size() < 100) {
      absl::StatusOr<Exposure> exposure =
          server()->Expose(Ends::PayloadOf(std::string(size, 'x')), 1);
      status = exposure.status();
      if (!status.ok()) break;
      regions.push_back(exposure->region);
    }
    EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted) << status;
    ASSERT_TRUE(Ends::Send(server(), "still here"));
    ends_->Exchange();
    EXPECT_EQ(client().events.packets.back(), "still here");
    for (const RemoteRegion& region : regions) server()->Withdraw(region);
  }
  EXPECT_EQ(Read(Expose("small again").region), "small again");
}

TEST_F(ReadKeysTest, WithoutWindowsPayloadsAreStaged) {
  DeviceOptions device;
  device.has_windows = false;
  ASSERT_NO_FATAL_FAILURE(Open(device));
  const int before = counts().mrs;
  const Exposure exposure = Expose(std::string(1000, 'x'));
  EXPECT_EQ(Read(exposure.region), std::string(1000, 'x'));
  EXPECT_EQ(counts().mrs, before + 1) << "the pool's segment";
  server()->Withdraw(exposure.region);
  // Reads late, as a device that repeats a READ may do. This must not break the
  // connection.
  (void)Read(exposure.region);
  EXPECT_TRUE(server().events.broken.empty());
  const Exposure next = Expose(std::string(500, 'y'));
  EXPECT_EQ(Read(next.region), std::string(500, 'y'));
  EXPECT_EQ(counts().mrs, before + 1) << "which is used again";
}

TEST_F(ReadKeysTest, DescriptionSaysHowPayloadsAreExposed) {
  const auto text = [this] { return server()->Describe(); };
  EXPECT_NE(text().find(", to 10.0.0.1, windows"), std::string::npos) << text();
  DeviceOptions device;
  device.enforce_window_range = false;
  ASSERT_NO_FATAL_FAILURE(Open(device));
  EXPECT_NE(text().find(", staged: reads reach beyond a window"),
            std::string::npos)
      << text();
  Options options;
  options.windows = Windows::kNever;
  ASSERT_NO_FATAL_FAILURE(Open(DeviceOptions(), options));
  EXPECT_NE(text().find(", staged: windows are off"), std::string::npos)
      << text();
}

TEST_F(ReadKeysTest, WithdrawingTwiceOrTheUnknownIsIgnored) {
  const Exposure exposure = Expose("x");
  server()->Withdraw(exposure.region);
  server()->Withdraw(exposure.region);
  RemoteRegion unknown(1);
  unknown[0].key = ~uint64_t{0};
  server()->Withdraw(unknown);
  ends_->Exchange();
  EXPECT_TRUE(server().events.broken.empty());
}

TEST_F(ReadKeysTest, ReadBeyondTheRegionIsRefusedHere) {
  const RemotePart part = Expose("0123456789").region[0];
  uint8_t into[16];
  RemotePart wrapping = part;
  wrapping.offset = ~uint64_t{0} - 4;
  wrapping.length = 16;
  RemotePart wide_key = part;
  wide_key.key |= uint64_t{1} << 32;
  client()->Read(part, 0, {into, 11}, 1);
  client()->Read(part, 10, {into, 1}, 2);
  client()->Read(part, ~uint64_t{0}, {into, 1}, 3);
  client()->Read(wrapping, 8, {into, 1}, 4);
  client()->Read(wide_key, 0, {into, 1}, 5);
  for (uint64_t cookie = 1; cookie <= 5; ++cookie) {
    EXPECT_TRUE(client().events.Failed(cookie)) << cookie;
  }
  ends_->Exchange();
  EXPECT_TRUE(client().events.broken.empty());
}

// Tests a window that cannot be invalidated yet, because the queue is full.
// When another window is requested, there is room again. The first window is
// still bound, and must not be used.
TEST_F(ReadKeysTest, WindowThatAwaitsItsInvalidationIsNotBound) {
  const RemotePart there =
      client()->Expose(Ends::PayloadOf(std::string(100, 'c')), 1)->region[0];
  const RemoteRegion first = Expose(std::string(100, 'a')).region;
  ends_->Exchange();
  ends_->api->Hold();
  uint8_t into[16];
  server()->Read(there, 0, {into, 16}, 1);
  // Fills the queue until no request can be added.
  absl::Status full;
  while (full.ok()) full = server()->Expose(Ends::PayloadOf("f"), 1).status();
  ASSERT_EQ(full.code(), absl::StatusCode::kResourceExhausted) << full;
  server()->Withdraw(first);
  server().events.on_read_done = [&](uint64_t) {
    EXPECT_TRUE(server()->Expose(Ends::PayloadOf("next"), 1).ok());
  };
  ends_->api->Release();
  ends_->Exchange();
  EXPECT_TRUE(server().events.Succeeded(1));
  EXPECT_TRUE(server().events.broken.empty()) << server().events.broken[0];
  EXPECT_EQ(Read(first), "") << "the withdrawn key is dead";
}

TEST_F(ReadKeysTest, BytesReadIntoTheEndpointsMemoryOutliveIt) {
  const std::string text(1000, 'x');
  const RemotePart part = Expose(text).region[0];
  memory::Block block = client()->AllocateForRead(text.size()).value();
  client()->Read(part, 0, block.span(), 1);
  ends_->Exchange();
  ASSERT_TRUE(client().events.Succeeded(1));
  ends_->Close();
  EXPECT_EQ(std::string(block.span().begin(), block.span().end()), text);
  EXPECT_GT(counts().mrs, 0);
  block = memory::Block();
  EXPECT_EQ(counts().mrs, 0);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
