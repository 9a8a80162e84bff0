// Tests payloads of several pieces: which pieces are exposed in place, their
// keys, and the end of the exposure.

#include <cerrno>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "transport/memory/bytes.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kLeast = 64 * 1024;  // smallest size that is exposed in place
// The size of a piece that is large enough for a registration of its own.
constexpr size_t kLarge = 600 * 1000;
constexpr size_t kMany = 100;

class PartsTest : public testing::Test {
 protected:
  void Open(Options options = {}) {
    payload_ = memory::Payload();
    owners_.clear();
    ends_.reset();
    ends_ = std::make_unique<Ends>(DeviceOptions(), options);
    ASSERT_TRUE(ends_->Connect().ok());
  }
  void SetUp() override { Open(); }

  End& server() { return ends_->server; }
  Counts counts() { return ends_->api->counts(); }

  // Appends a piece to payload_.
  void Append(memory::Block block, char fill) {
    std::memset(block.data.get(), fill, block.size);
    owners_.push_back(block.data);
    payload_.Append(block.AsBytes());
  }
  void AppendHeap(size_t size, char fill) {
    Append(memory::AllocateBlock(size).value(), fill);
  }
  void AppendRegistered(size_t size, char fill) {
    Append(server()->AllocateForRead(size).value(), fill);
  }
  // Appends pieces that become five parts. The first, third and last part are
  // copies. The last one consists of two pieces.
  void AppendFiveParts() {
    AppendHeap(100, 'a');
    AppendRegistered(kLeast, 'b');
    AppendHeap(5000, 'c');
    AppendRegistered(3 * kLeast, 'd');
    AppendRegistered(kLeast - 1, 'e');
    AppendHeap(10, 'f');
  }

  Exposure Expose(size_t max_parts = kMany) {
    absl::StatusOr<Exposure> exposure = server()->Expose(payload_, max_parts);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    if (!exposure.ok()) return {RemoteRegion(1), {}};
    owners_.push_back(exposure->stable.pieces()[0].owner);
    return *std::move(exposure);
  }
  static std::set<uint64_t> KeysOf(const RemoteRegion& region) {
    std::set<uint64_t> keys;
    for (const RemotePart& part : region) keys.insert(part.key);
    return keys;
  }
  static std::string TextOf(const memory::Payload& payload) {
    std::string text(payload.size(), '.');
    payload.CopyTo(reinterpret_cast<uint8_t*>(&text[0]));
    return text;
  }
  // Expects that the peer can read the payload, regardless of the parts of its
  // region.
  void ExpectReadable(const RemoteRegion& region) {
    EXPECT_TRUE(ends_->ReadAll(&ends_->client, region) == TextOf(payload_));
  }
  bool IsInPlace(const Exposure& exposure, size_t part, size_t piece) const {
    const memory::Bytes& bytes = payload_.pieces()[piece];
    return exposure.stable.pieces()[part].data == bytes.data &&
           exposure.region[part].offset ==
               reinterpret_cast<uintptr_t>(bytes.data) &&
           exposure.region[part].length == bytes.size;
  }
  // Expects that the endpoint holds no memory once the caller holds no memory.
  void ExpectAllIsLetGo() {
    ends_->Exchange();
    payload_ = memory::Payload();
    EXPECT_EQ(counts().bound_mws, 0);
    for (size_t i = 0; i < owners_.size(); ++i) {
      EXPECT_TRUE(owners_[i].expired()) << "piece " << i;
    }
    EXPECT_TRUE(ends_->api->misuse().empty()) << ends_->api->misuse()[0];
    EXPECT_TRUE(server().events.broken.empty());
  }

  std::unique_ptr<Ends> ends_;
  memory::Payload payload_;
  // The owners of the pieces and of the copies.
  std::vector<std::weak_ptr<const void>> owners_;
};

TEST_F(PartsTest, RegisteredPiecesLieWhereTheyWereUnderKeysOfTheirOwn) {
  AppendFiveParts();
  Exposure exposure = Expose();
  ASSERT_EQ(exposure.region.size(), 5u);
  ASSERT_EQ(exposure.stable.pieces().size(), 5u);
  EXPECT_TRUE(IsInPlace(exposure, 1, 1));
  EXPECT_TRUE(IsInPlace(exposure, 3, 3));
  EXPECT_FALSE(IsInPlace(exposure, 0, 0));
  EXPECT_FALSE(IsInPlace(exposure, 2, 2));
  EXPECT_EQ(exposure.region[4].length, kLeast - 1 + 10);
  const uint64_t copies = exposure.region[0].key;
  EXPECT_EQ(exposure.region[2].key, copies);
  EXPECT_EQ(exposure.region[4].key, copies);
  EXPECT_NE(exposure.region[1].key, copies);
  EXPECT_NE(exposure.region[3].key, copies);
  EXPECT_NE(exposure.region[1].key, exposure.region[3].key);
  EXPECT_EQ(counts().bound_mws, 3);
  EXPECT_TRUE(TextOf(exposure.stable) == TextOf(payload_));
  ExpectReadable(exposure.region);
  server()->Withdraw(std::exchange(exposure, Exposure()).region);
  ExpectAllIsLetGo();
}

TEST_F(PartsTest, WindowsAreUsedAgain) {
  for (int i = 0; i < 50; ++i) {
    AppendFiveParts();
    Exposure exposure = Expose();
    ExpectReadable(exposure.region);
    server()->Withdraw(std::exchange(exposure, Exposure()).region);
    ExpectAllIsLetGo();
  }
  EXPECT_EQ(counts().mws, 3);
}

TEST_F(PartsTest, EveryKeyIsDeadAfterTheWithdrawal) {
  for (size_t i = 0; i < 5; ++i) {
    ASSERT_NO_FATAL_FAILURE(Open());
    AppendFiveParts();
    const RemoteRegion region = Expose().region;
    server()->Withdraw(region);
    ends_->Exchange();
    EXPECT_EQ(ends_->ReadPart(&ends_->client, region[i]), "") << "part " << i;
  }
}

TEST_F(PartsTest, LargePiecesAreRegisteredForAsLongAsTheyAreExposed) {
  AppendHeap(kLarge, 'a');
  AppendHeap(100, 'b');
  AppendHeap(kLarge, 'c');
  (void)server()->Expose(Ends::PayloadOf("the pool grows"), 1);
  const int before = counts().mrs;
  Exposure exposure = Expose();
  ASSERT_EQ(exposure.region.size(), 3u);
  EXPECT_TRUE(IsInPlace(exposure, 0, 0));
  EXPECT_TRUE(IsInPlace(exposure, 2, 2));
  EXPECT_EQ(counts().mrs, before + 2);
  ExpectReadable(exposure.region);
  server()->Withdraw(exposure.region);
  ends_->Exchange();
  EXPECT_EQ(counts().mrs, before);
}

TEST_F(PartsTest, DeclaredPiecesStayRegistered) {
  AppendHeap(kLeast, 'a');
  AppendHeap(kLeast, 'b');
  const memory::Bytes& second = payload_.pieces()[1];
  const auto declared =
      memory::StableMemory::Declare(second.data, second.size).value();
  const Exposure exposure = Expose();
  ASSERT_EQ(exposure.region.size(), 2u);
  EXPECT_FALSE(IsInPlace(exposure, 0, 0));
  EXPECT_TRUE(IsInPlace(exposure, 1, 1));
  ExpectReadable(exposure.region);
}

TEST_F(PartsTest, PieceThatCannotBeRegisteredIsCopied) {
  AppendHeap(kLarge, 'a');
  AppendHeap(kLarge, 'b');
  ends_->api->FailNext(Call::kRegMr, EFAULT);
  const Exposure exposure = Expose();
  ASSERT_EQ(exposure.region.size(), 2u);
  EXPECT_FALSE(IsInPlace(exposure, 0, 0));
  EXPECT_TRUE(IsInPlace(exposure, 1, 1));
  ExpectReadable(exposure.region);
}

TEST_F(PartsTest, WithoutRoomInThePoolTheCopyIsOnTheHeap) {
  Options options;
  options.exposed_bytes = 4096;
  ASSERT_NO_FATAL_FAILURE(Open(options));
  AppendFiveParts();
  const int before = counts().mrs;
  Exposure exposure = Expose();
  ASSERT_EQ(exposure.region.size(), 5u);
  EXPECT_EQ(counts().mrs, before + 1);
  ExpectReadable(exposure.region);
  server()->Withdraw(std::exchange(exposure, Exposure()).region);
  ExpectAllIsLetGo();
  EXPECT_EQ(counts().mrs, before);
}

TEST_F(PartsTest, OnePartIsOneCopy) {
  AppendFiveParts();
  const Exposure exposure = Expose(/*max_parts=*/1);
  EXPECT_EQ(exposure.region.size(), 1u);
  EXPECT_EQ(counts().bound_mws, 1);
  ExpectReadable(exposure.region);
}

// Tests that long pieces of a copy are parts, so that a receiver can put each
// piece into its own memory.
TEST_F(PartsTest, LongPiecesOfACopyArePartsOfTheirOwn) {
  for (size_t size : {size_t{1}, kLeast, size_t{2}, size_t{3}, 2 * kLeast}) {
    AppendHeap(size, 'a' + payload_.pieces().size());
  }
  const Exposure exposure = Expose(/*max_parts=*/5);
  EXPECT_EQ(KeysOf(exposure.region).size(), 1u);
  ASSERT_EQ(exposure.region.size(), 4u);
  EXPECT_EQ(exposure.region[0].length, 1u);
  EXPECT_EQ(exposure.region[1].length, kLeast);
  EXPECT_EQ(exposure.region[2].length, 5u);
  EXPECT_EQ(exposure.region[3].length, 2 * kLeast);
  ExpectReadable(exposure.region);
  EXPECT_EQ(Expose(/*max_parts=*/3).region.size(), 1u);
}

TEST_F(PartsTest, OneExposureHasABoundedNumberOfWindows) {
  for (int pieces : {32, 40}) {
    ASSERT_NO_FATAL_FAILURE(Open());
    for (int i = 0; i < pieces; ++i) AppendRegistered(kLeast, 'a' + i % 26);
    const Exposure exposure = Expose(/*max_parts=*/512);
    EXPECT_LE(counts().bound_mws, 32);
    EXPECT_EQ(KeysOf(exposure.region).size(), 32u);
    // Expects a part for each piece, even if it is copied.
    EXPECT_EQ(exposure.region.size(), static_cast<size_t>(pieces));
    ExpectReadable(exposure.region);
  }
}

// Tests the bytes between two copied pieces. The window of the copies covers
// these bytes.
TEST_F(PartsTest, NothingOfOthersLiesBetweenTheCopies) {
  // Sends other payloads, which reuse the memory.
  for (int i = 0; i < 200; ++i) {
    const auto other = Ends::PayloadOf(std::string(1000, 'S'));
    server()->Withdraw(server()->Expose(other, 1)->region);
    ends_->Exchange();
  }
  AppendHeap(1, 'a');
  AppendRegistered(kLeast, 'b');
  AppendHeap(1, 'c');
  const Exposure exposure = Expose();
  ASSERT_EQ(exposure.region.size(), 3u);
  RemotePart all = exposure.region[0];
  all.length = exposure.region[2].offset + 1 - all.offset;
  const std::string seen = ends_->ReadPart(&ends_->client, all);
  EXPECT_EQ(seen.size(), all.length);
  EXPECT_EQ(seen.find('S'), std::string::npos) << seen;
}

// Exposes while the device is busy. The queue has less and less room, until it
// is full.
TEST_F(PartsTest, FullQueueTakesFewerPartsAndThenNothing) {
  AppendFiveParts();
  ends_->api->Hold();
  std::vector<Exposure> exposures;
  absl::Status full;
  while (full.ok()) {
    absl::StatusOr<Exposure> exposure = server()->Expose(payload_, kMany);
    full = exposure.status();
    if (full.ok()) exposures.push_back(*std::move(exposure));
  }
  EXPECT_TRUE(absl::IsResourceExhausted(full)) << full;
  EXPECT_GT(exposures.size(), 10u);
  EXPECT_EQ(KeysOf(exposures.front().region).size(), 3u);
  EXPECT_EQ(KeysOf(exposures.back().region).size(), 1u);
  EXPECT_EQ(exposures.front().region.size(), 5u);
  ends_->api->Release();
  ends_->Exchange();
  for (const Exposure& exposure : exposures) ExpectReadable(exposure.region);

  ends_->api->Hold();
  for (const Exposure& exposure : exposures) {
    server()->Withdraw(exposure.region);
  }
  exposures.clear();
  ends_->api->Release();
  ends_->Exchange();
  ExpectAllIsLetGo();
}

TEST_F(PartsTest, WindowThatCannotBeMadeLeavesNothingBehind) {
  int failed = 0;
  for (bool any = true; any; ++failed) {
    SCOPED_TRACE(absl::StrCat("failure after ", failed));
    ASSERT_NO_FATAL_FAILURE(Open());
    AppendFiveParts();
    AppendHeap(kLarge, 'g');
    ends_->api->FailNext(Call::kAllocMw, ENOMEM, failed);
    any = !server()->Expose(payload_, kMany).ok();
    EXPECT_EQ(any, ends_->api->failures_to_come() == 0);
    if (!any) break;
    ends_->Exchange();
    EXPECT_EQ(counts().bound_mws, 0);
    // Exposes again. An earlier failure must not prevent this.
    Exposure exposure = Expose();
    EXPECT_EQ(exposure.region.size(), 6u);
    ExpectReadable(exposure.region);
    server()->Withdraw(std::exchange(exposure, Exposure()).region);
    ExpectAllIsLetGo();
  }
  EXPECT_EQ(failed, 4) << "of the copies, and of three pieces";
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
