// Tests memory of the program: which parts stay registered, and if a peer reads
// the current bytes.

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "tests/transport/fabric/verbs/mapping.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

using memory::StableMemory;

constexpr size_t kLarge = 1 << 20;  // larger than a payload that is copied

class ApplicationMemoryTest : public testing::Test {
 protected:
  void Open(Options options = {}) {
    memory_.reset();
    ends_.reset();
    ends_ = std::make_unique<Ends>(DeviceOptions(), options);
    ASSERT_TRUE(ends_->Connect().ok());
    FakeVerbs* const api = ends_->api;
    memory_ = std::make_unique<Mapping>(kLarge, [api](void* data, size_t size) {
      api->ReplacePages(data, size);
    });
    memory_->Fill('a');
  }
  void SetUp() override { Open(); }

  std::unique_ptr<StableMemory> Declare() {
    return StableMemory::Declare(memory_->data(), kLarge).value();
  }
  // Exposes the payload in place, and withdraws it afterwards. Returns the
  // bytes that the client reads.
  std::string Pass(const memory::Payload& payload) {
    absl::StatusOr<Exposure> exposure = ends_->server->Expose(payload, 1);
    EXPECT_TRUE(exposure.ok()) << exposure.status();
    if (!exposure.ok()) return "";
    EXPECT_EQ(exposure->stable.pieces()[0].data, payload.pieces()[0].data);
    const std::string got = ends_->ReadAll(&ends_->client, exposure->region);
    ends_->server->Withdraw(exposure->region);
    ends_->Exchange();
    return got;
  }
  static std::string All(char fill, size_t size = kLarge) {
    return std::string(size, fill);
  }
  int regions() { return ends_->api->counts().mrs; }

  std::unique_ptr<Ends> ends_;
  std::unique_ptr<Mapping> memory_;
};

TEST_F(ApplicationMemoryTest, MappedAnewIsNeverSentStale) {
  EXPECT_EQ(Pass(memory_->Slice()), All('a'));
  memory_->Replace('b');
  EXPECT_EQ(Pass(memory_->Slice()), All('b'));
}

TEST_F(ApplicationMemoryTest, DeclaredAnewIsNeverSentStale) {
  auto declared = Declare();
  EXPECT_EQ(Pass(memory_->Slice()), All('a'));
  declared.reset();
  memory_->Replace('b');
  EXPECT_EQ(Pass(memory_->Slice()), All('b'));
  declared = Declare();
  EXPECT_EQ(Pass(memory_->Slice()), All('b'));
  EXPECT_EQ(Pass(memory_->Slice()), All('b'));
}

// Replaces pages while the peer still reads the old pages. The peer must get
// the old bytes, and the next message the new bytes.
TEST_F(ApplicationMemoryTest, DeclaredAnewWhileInUseIsNotSentStale) {
  auto declared = Declare();
  const Exposure before = ends_->server->Expose(memory_->Slice(), 1).value();
  declared.reset();
  memory_->Replace('b');
  declared = Declare();
  EXPECT_EQ(Pass(memory_->Slice()), All('b'));
  EXPECT_EQ(ends_->ReadAll(&ends_->client, before.region), All('a'));
}

// Replaces pages of declared memory, which a program must not do. The peer gets
// old bytes. This shows that simulated devices distinguish new pages from old
// pages.
TEST_F(ApplicationMemoryTest, BrokenPromiseSendsOldBytes) {
  const auto declared = Declare();
  EXPECT_EQ(Pass(memory_->Slice()), All('a'));
  memory_->Replace('b');
  EXPECT_EQ(Pass(memory_->Slice()), All('a'));
}

TEST_F(ApplicationMemoryTest, DeclaredMemoryIsRegisteredOnce) {
  const auto declared = Declare();
  const int before = regions();
  for (int i = 0; i < 5; ++i) {
    memory_->Fill(static_cast<char>('a' + i));
    EXPECT_EQ(Pass(memory_->Slice()), All(static_cast<char>('a' + i)));
    EXPECT_EQ(regions(), before + 1);
  }
  EXPECT_NE(ends_->server->Describe().find(
                "registrations: 4 hits, 1 misses, 0 evictions, 1 MiB kept"),
            std::string::npos)
      << ends_->server->Describe();
}

TEST_F(ApplicationMemoryTest, PromiseThatIsOverEndsTheRegistration) {
  auto declared = Declare();
  const int before = regions();
  Pass(memory_->Slice());
  EXPECT_EQ(regions(), before + 1);
  declared.reset();
  EXPECT_EQ(regions(), before);
}

// Tests a small part of declared memory. Such a part is registered, while a
// small part of other memory is copied.
TEST_F(ApplicationMemoryTest, SmallPartOfDeclaredMemoryIsSentInPlace) {
  const auto declared = Declare();
  EXPECT_EQ(Pass(memory_->Slice(1000, 20000)), All('a', 20000));
  EXPECT_EQ(Pass(memory_->Slice(500, 100)), All('a', 100));
}

TEST_F(ApplicationMemoryTest, SmallPayloadOfOtherMemoryIsCopied) {
  const memory::Payload slice = memory_->Slice(1000, 20000);
  const Exposure exposure = ends_->server->Expose(slice, 1).value();
  EXPECT_NE(exposure.stable.pieces()[0].data, slice.pieces()[0].data);
}

TEST_F(ApplicationMemoryTest, SeveralExposuresAtOnceShareARegistration) {
  const int before = regions();
  const memory::Payload slice = memory_->Slice();
  const Exposure first = ends_->server->Expose(slice, 1).value();
  const Exposure second = ends_->server->Expose(slice, 1).value();
  EXPECT_EQ(regions(), before + 1);
  EXPECT_NE(first.region[0].key, second.region[0].key);
  ends_->server->Withdraw(first.region);
  ends_->Exchange();
  EXPECT_EQ(ends_->ReadAll(&ends_->client, second.region), All('a'));
  ends_->server->Withdraw(second.region);
  ends_->Exchange();
  EXPECT_EQ(regions(), before);
}

// Forwards received memory without a copy.
TEST_F(ApplicationMemoryTest, ReceivedMemoryIsSentOnWithoutARegistration) {
  memory::Block block = ends_->server->AllocateForRead(kLarge).value();
  std::memset(block.data.get(), 'r', kLarge);
  const int before = regions();
  EXPECT_EQ(Pass(memory::Payload(block.AsBytes())), All('r'));
  EXPECT_EQ(regions(), before);
}

// Reads into heap memory, because the pool has no room. The heap memory is
// registered once for all chunks. The next message uses the same registration
// if it comes soon.
TEST_F(ApplicationMemoryTest, HeapMemoryThatIsReadIntoIsRegisteredOnce) {
  Options options;
  options.read_bytes = 600 * 1024;
  options.cache_bytes = 4 << 20;
  options.spare_idle = absl::Milliseconds(500);
  ASSERT_NO_FATAL_FAILURE(Open(options));
  const Exposure exposure = ends_->server->Expose(memory_->Slice(), 1).value();
  const int before = regions();
  const size_t chunk = ends_->client->capabilities().read_chunk_bytes;
  const uint8_t* where = nullptr;
  uint64_t cookie = 0;
  for (int message = 0; message < 2; ++message) {
    memory::Block block = ends_->client->AllocateForRead(kLarge).value();
    if (message > 0) {
      EXPECT_EQ(block.data.get(), where);
    }
    where = block.data.get();
    std::memset(block.data.get(), 0, kLarge);
    for (size_t at = 0; at < kLarge; at += chunk) {
      ends_->client->Read(exposure.region[0], at,
                          {block.data.get() + at, chunk}, ++cookie);
      ends_->Exchange();
      EXPECT_TRUE(ends_->client.events.Succeeded(cookie));
      EXPECT_EQ(regions(), before + 1);
    }
    EXPECT_EQ(std::string(block.span().begin(), block.span().end()), All('a'));
  }
  EXPECT_EQ(regions(), before + 1);
  EXPECT_TRUE(ends_->ExchangeUntil([&] { return regions() == before; }));
}

TEST_F(ApplicationMemoryTest, RegistrationEndsWithTheConnection) {
  const auto declared = Declare();
  Pass(memory_->Slice());
  (void)ends_->server->Expose(memory_->Slice(), 1);
  ends_->Close();
  EXPECT_EQ(regions(), 0);
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
