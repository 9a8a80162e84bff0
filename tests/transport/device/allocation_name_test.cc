#include "transport/device/allocation_name.h"

#include <cstring>
#include <random>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace penstock {
namespace device {
namespace {

using testing::HasSubstr;

AllocationName RandomName(std::mt19937_64* random) {
  AllocationName name;
  for (char& byte : name.device.bytes) byte = static_cast<char>((*random)());
  for (char& byte : name.ipc.bytes) byte = static_cast<char>((*random)());
  name.size = 1 + (*random)() % AllocationNames::kMaxSize;
  name.address = (*random)() >> 1;
  name.id = (*random)();
  return name;
}

bool IsSame(const AllocationName& a, const AllocationName& b) {
  return a.size == b.size && a.address == b.address && a.id == b.id &&
         std::memcmp(a.device.bytes, b.device.bytes, sizeof a.device) == 0 &&
         std::memcmp(a.ipc.bytes, b.ipc.bytes, sizeof a.ipc) == 0;
}

TEST(AllocationNames, HaveTheBytesThatAreWrittenDown) {
  const auto names = AllocationNames::Create();
  ASSERT_TRUE(names.ok());
  AllocationName name;
  std::memset(name.device.bytes, 'd', sizeof name.device.bytes);
  std::memset(name.ipc.bytes, 'i', sizeof name.ipc.bytes);
  name.size = 0x0807060504030201;
  name.address = 0x1817161514131211;
  name.id = 0x2827262524232221;
  const std::string bytes = names->Encode(name);
  EXPECT_EQ(bytes.substr(0, 105),
            "\1" + std::string(16, 'd') + "\1\2\3\4\5\6\7\10" +
                "\21\22\23\24\25\26\27\30" + "\41\42\43\44\45\46\47\50" +
                std::string(64, 'i'));
  EXPECT_EQ(bytes.size(), AllocationNames::kBytes);
}

TEST(AllocationNames, ComeBackAndTellWhoseTheyAre) {
  const unsigned seed = std::random_device()();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto own = AllocationNames::Create();
  const auto other = AllocationNames::Create();
  ASSERT_TRUE(own.ok() && other.ok());
  for (int i = 0; i < 1000; ++i) {
    const AllocationName name = RandomName(&random);
    const auto here = own->Decode(own->Encode(name));
    const auto there = other->Decode(own->Encode(name));
    ASSERT_TRUE(here.ok() && there.ok());
    EXPECT_TRUE(IsSame(here->name, name));
    EXPECT_TRUE(IsSame(there->name, name));
    EXPECT_TRUE(here->is_own);
    EXPECT_FALSE(there->is_own);
  }
}

TEST(AllocationNames, NoBitOfOnesOwnCanBeChanged) {
  std::mt19937_64 random(7);
  const auto names = AllocationNames::Create();
  ASSERT_TRUE(names.ok());
  const std::string bytes = names->Encode(RandomName(&random));
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string changed = bytes;
    changed[bit / 8] = static_cast<char>(changed[bit / 8] ^ (1 << bit % 8));
    const auto decoded = names->Decode(changed);
    EXPECT_TRUE(!decoded.ok() || !decoded->is_own) << "bit " << bit;
  }
}

TEST(AllocationNames, NumbersOfNoAllocationAreNone) {
  const auto names = AllocationNames::Create();
  ASSERT_TRUE(names.ok());
  const auto is_one = [&](uint64_t size, uint64_t address) {
    AllocationName name;
    name.size = size;
    name.address = address;
    return names->Decode(names->Encode(name)).ok();
  };
  constexpr uint64_t kMost = AllocationNames::kMaxSize;
  EXPECT_TRUE(is_one(1, 0));
  EXPECT_TRUE(is_one(kMost, UINT64_MAX - kMost));
  EXPECT_FALSE(is_one(kMost, UINT64_MAX - kMost + 1));
  EXPECT_FALSE(is_one(1, UINT64_MAX));
  for (const uint64_t size : {uint64_t{0}, kMost + 1, UINT64_MAX}) {
    EXPECT_FALSE(is_one(size, 0)) << size;
  }
}

TEST(AllocationNames, OtherBytesAreNone) {
  std::mt19937_64 random(8);
  const auto names = AllocationNames::Create();
  ASSERT_TRUE(names.ok());
  const std::string bytes = names->Encode(RandomName(&random));
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_TRUE(
        absl::IsInvalidArgument(names->Decode(bytes.substr(0, size)).status()))
        << size;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(names->Decode(bytes + "x").status()));
  std::string newer = bytes + "what a newer version has";
  newer[0] = 2;
  EXPECT_THAT(names->Decode(newer).status().message(),
              HasSubstr("version 2, not 1: use one version of Penstock"));
}

}  // namespace
}  // namespace device
}  // namespace penstock
