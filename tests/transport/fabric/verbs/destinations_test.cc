// Tests memory of the program that READs write to: which memory is accepted,
// and how long it stays registered.

#include "transport/memory/destinations.h"

#include <cerrno>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "tests/transport/fabric/verbs/ends.h"
#include "transport/memory/stable_memory.h"

namespace penstock {
namespace fabric {
namespace verbs {
namespace {

constexpr size_t kLeast = 64 * 1024;  // smallest size of a separate READ
// The size of a message that is large enough for a registration of its own.
constexpr size_t kLarge = 600 * 1000;

class VerbsDestinationsTest : public testing::Test {
 protected:
  VerbsDestinationsTest() : memory_(kLarge) {
    EXPECT_TRUE(ends_.Connect().ok());
    ExpectLands(kLeast);  // by now, the server's pool has grown
  }

  End& client() { return ends_.client; }
  int regions() { return ends_.api->counts().mrs; }
  std::shared_ptr<const void> Prepare(size_t size, size_t offset = 0) {
    return client()->PrepareToRead({memory_.data() + offset, size});
  }
  // Reads `size` bytes, which the peer exposes, into the memory.
  void ExpectLands(size_t size) {
    const std::string text(size, 'a' + ++cookie_ % 26);
    const auto exposure = ends_.server->Expose(Ends::PayloadOf(text), 1);
    ASSERT_TRUE(exposure.ok()) << exposure.status();
    client()->Read(exposure->region[0], 0, {memory_.data(), size}, cookie_);
    ends_.Exchange();
    EXPECT_TRUE(client().events.Succeeded(cookie_));
    EXPECT_EQ(std::memcmp(memory_.data(), text.data(), size), 0);
    ends_.server->Withdraw(exposure->region);
    ends_.Exchange();
  }

  Ends ends_;
  std::vector<uint8_t> memory_;
  uint64_t cookie_ = 0;
};

TEST_F(VerbsDestinationsTest, LargeMemoryIsRegisteredForAsLongAsItIsPrepared) {
  const int before = regions();
  auto prepared = Prepare(kLarge);
  ASSERT_NE(prepared, nullptr);
  EXPECT_EQ(regions(), before + 1);
  ExpectLands(kLeast);
  ExpectLands(kLeast);
  EXPECT_EQ(regions(), before + 1);
  prepared.reset();
  EXPECT_EQ(regions(), before);
  EXPECT_EQ(memory::FindStable(memory_.data(), 1), nullptr);
}

TEST_F(VerbsDestinationsTest, OtherMemoryCostsLessToCopyTo) {
  EXPECT_EQ(Prepare(256 * 1024), nullptr);
  EXPECT_EQ(Prepare(kLeast), nullptr);
}

TEST_F(VerbsDestinationsTest, DeclaredMemoryStaysRegistered) {
  auto declared = memory::StableMemory::Declare(memory_.data(), kLarge).value();
  EXPECT_EQ(Prepare(kLeast - 1), nullptr) << "too short for a READ";
  const int before = regions();
  ASSERT_NE(Prepare(kLeast), nullptr);
  ASSERT_NE(Prepare(kLeast, kLeast), nullptr);
  ExpectLands(kLeast);
  EXPECT_EQ(regions(), before + 1);
  declared.reset();
  EXPECT_EQ(regions(), before);
}

TEST_F(VerbsDestinationsTest, DestinationsForManyMessagesStayRegistered) {
  auto often = std::make_shared<memory::Destinations>(
      std::vector<memory::Destination>{{memory_.data(), kLeast}}, nullptr,
      memory::Destinations::Registered::kForLife);
  const int before = regions();
  for (int i = 0; i < 3; ++i) {
    ASSERT_NE(Prepare(kLeast), nullptr);
    EXPECT_EQ(regions(), before + 1);
  }
  often.reset();
  EXPECT_EQ(regions(), before);
}

TEST_F(VerbsDestinationsTest, MemoryOfThePoolIsRegisteredAlready) {
  const memory::Block block = client()->AllocateForRead(kLeast).value();
  const int before = regions();
  EXPECT_NE(client()->PrepareToRead({block.data.get(), kLeast}), nullptr);
  EXPECT_EQ(regions(), before);
}

TEST_F(VerbsDestinationsTest, MemoryThatCannotBeRegisteredIsRefused) {
  ends_.api->FailNext(Call::kRegMr, EFAULT);
  ends_.api->FailNext(Call::kRegMr, EFAULT, /*after=*/1);
  EXPECT_EQ(Prepare(kLarge), nullptr);
  EXPECT_EQ(memory::FindStable(memory_.data(), 1), nullptr);
  EXPECT_NE(Prepare(kLarge), nullptr);
}

TEST_F(VerbsDestinationsTest, MemoryOfWhichAPartIsDeclaredIsRefused) {
  const auto declared =
      memory::StableMemory::Declare(memory_.data() + 100, 100).value();
  EXPECT_EQ(Prepare(kLarge), nullptr);
}

// Tests that a READ in progress keeps the registration.
TEST_F(VerbsDestinationsTest, ReadOutlivesWhatWasPrepared) {
  const std::string text(kLeast, 'x');
  const auto exposure = ends_.server->Expose(Ends::PayloadOf(text), 1).value();
  auto prepared = Prepare(kLarge);
  ends_.api->Hold();
  client()->Read(exposure.region[0], 0, {memory_.data(), kLeast}, 7);
  prepared.reset();
  ends_.api->Release();
  ends_.Exchange();
  EXPECT_TRUE(client().events.Succeeded(7));
  EXPECT_TRUE(ends_.api->misuse().empty());
}

}  // namespace
}  // namespace verbs
}  // namespace fabric
}  // namespace penstock
